package compare

import (
	"encoding/json"
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Table names the lines of one kind, which are shown together.
type Table string

// The tables.
const (
	Overall Table = "overall"
	Ciphers Table = "ciphers"
	MACs    Table = "macs"
	Kex     Table = "kex"
	Cells   Table = "cells"
	Figures Table = "figures" // measurements other than SSH trials
	Methods Table = "methods"
	Logins  Table = "logins" // taken apart
)

// Subject is one thing that files have figures of.
type Subject struct {
	Name      string           `json:"name"`
	Suite     alg.Suite        `json:"suite,omitzero"` // the algorithms that it is, or uses
	Direction record.Direction `json:"direction,omitempty"`
	Factor    string           `json:"factor,omitempty"` // in which a login differs from the plain one
	Source    string           `json:"source,omitempty"` // the program that measured it
	Method    *record.Method   `json:"method,omitempty"`
}

// Quantity is the property of a subject that changed.
type Quantity string

// The quantities.
const (
	Speed Quantity = "speed"
	CPU   Quantity = "cpu_time" // for the same bytes, or for a login
	Wall  Quantity = "wall_time"
)

// Line is one quantity of a subject in all files.
type Line struct {
	Table Table `json:"table"`
	Subject
	Quantity    Quantity          `json:"quantity"`
	By          rank.By           `json:"by,omitempty"`                  // what a speed of SSH is computed from; of Kex, Throughput stands for the time of a login
	ClientAlone bool              `json:"cpu_of_client_alone,omitempty"` // the server's CPU time is not known in all files
	Unit        string            `json:"unit,omitempty"`                // of Values
	Values      []*stats.Interval `json:"values,omitempty"`              // one per file; nil where a file lacks it
	Ratios      []Ratio           `json:"ratios"`                        // of each file after the first
}

// Ratio is the change of a quantity since the first file, above 1 where it is larger now. It
// includes the doubt about the level of both runs.
type Ratio struct {
	stats.Estimate
	Rest         stats.Estimate // relative to all other lines, which is free of that doubt; unknown where there are none
	stats.Judged                // among the lines that are judged together; the zero value is not judged
	Outcome      Outcome        // of a gate; "" where none looked at it
}

// Verdict returns the verdict on a ratio of the line in words; "" where the ratio is not known.
func (l *Line) Verdict(r Ratio) string {
	switch {
	case !r.Known():
		return ""
	case l.Quantity == Speed:
		return r.Verdict.Called("faster", "slower")
	}
	return r.Verdict.Called("more", "less")
}

// jsonRatio is a ratio for programs.
type jsonRatio struct {
	stats.Interval
	Rest     *stats.Interval `json:"to_rest,omitempty"`
	Together *stats.Interval `json:"all_lines,omitempty"` // its interval holds for all lines together
	P        float64         `json:"p_holm,omitempty"`
	Verdict  string          `json:"verdict,omitempty"`
	ByRest   bool            `json:"verdict_by_rest,omitempty"`
	Least    float64         `json:"least_shown_pct,omitempty"`
	Outcome  Outcome         `json:"outcome,omitempty"`
}

// MarshalJSON writes the line with its verdicts. An unknown ratio is null.
func (l Line) MarshalJSON() ([]byte, error) {
	type plain Line
	ratios := make([]*jsonRatio, len(l.Ratios))
	for i, r := range l.Ratios {
		if r.Known() {
			ratios[i] = &jsonRatio{r.Interval(), r.Rest.OrNil(), bounded(r.Together), r.Judged.P, l.Verdict(r), r.ByRest, 100 * r.Least, r.Outcome}
		}
	}
	return json.Marshal(struct {
		plain
		Ratios []*jsonRatio `json:"ratios"`
	}{plain(l), ratios})
}

// bounded returns an interval of a ratio, nil where nothing bounds it.
func bounded(i stats.Interval) *stats.Interval {
	if i.Lo <= 0 || math.IsInf(i.Hi, 0) {
		return nil
	}
	return &i
}

// Only is a subject that is not compared because some files lack it.
type Only struct {
	Table Table `json:"table"`
	Subject
	Files   []int `json:"in_files"`             // places, from 0, of those with figures
	Offered []int `json:"offered_in,omitempty"` // of those whose programs have an algorithm, whether measured or not
}

// Having returns the places of the files that have the subject.
func (o Only) Having() []int {
	if o.Offered != nil {
		return o.Offered
	}
	return o.Files
}

// complete finishes the ratios of file k after the first in lines with their own errors: each
// against the mean of the others, with the doubt about single lines, and by itself with the doubt
// about the level.
func complete(lines []Line, k int, level, line float64) {
	sum, variance := 0.0, 0.0
	for _, l := range lines {
		sum += l.Ratios[k].Log
		variance += l.Ratios[k].Err * l.Ratios[k].Err
	}
	others := float64(len(lines) - 1)
	for _, l := range lines {
		r := &l.Ratios[k]
		if own := r.Estimate; others > 0 && level > 0 {
			left := math.Sqrt(math.Max(0, variance-own.Err*own.Err)) / others
			r.Rest = own.Over(stats.Estimate{Log: (sum - own.Log) / others, Err: math.Hypot(left, line), N: own.N})
		}
		r.Estimate = r.WithError(level, 0)
	}
}

// judge gives verdicts to the ratios of lines in one quantity together, from one place to before
// another one.
func judge(lines []Line, quantity Quantity, from, to int) {
	var known []*Ratio
	var ratios, rests []stats.Estimate
	for _, l := range lines {
		for k := from; k < to; k++ {
			switch r := &l.Ratios[k]; {
			case l.Quantity != quantity:
			case !r.Known():
				r.Verdict = stats.NotEnough
			default:
				known, ratios, rests = append(known, r), append(ratios, r.Estimate), append(rests, r.Rest)
			}
		}
	}
	for i, judged := range stats.JudgeBeside(ratios, rests) {
		known[i].Judged = judged
	}
}

// In returns the lines of a table.
func (c *Comparison) In(table Table) (lines []Line) {
	for _, l := range c.Lines {
		if l.Table == table {
			lines = append(lines, l)
		}
	}
	return lines
}

// Shows returns the smallest loss of a quantity that any line could show, as a share: a slowdown,
// or more CPU time; 0 where none could show any.
func (c *Comparison) Shows(quantity Quantity) (least float64) {
	for _, l := range c.Lines {
		for _, r := range l.Ratios {
			if l.Quantity == quantity && r.Least > 0 && (least == 0 || r.Least < least) {
				least = r.Least
			}
		}
	}
	return least
}

// floor is the smallest change, in percent, that any amount of data could show in spite of a doubt
// about the level of both runs together.
func floor(level float64) float64 { return 100 * math.Expm1(stats.Estimate{Err: level}.Arm()) }
