package methods

import (
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Comparison relates the methods of several files to those of the first.
type Comparison struct {
	Files   []string // the first is what the others are related to
	Changes []Change // of the methods that all files have figures of
	Only    []Only   // what not all files have figures of
}

// Change is a method, and what became of it in each file but the first.
type Change struct {
	record.Method
	Speed []Ratio // above 1: faster
	Cost  []Ratio // of CPU time per byte, both sides together; above 1: more of it
}

// Only is a method that has figures in some of the files.
type Only struct {
	record.Method
	Files []int // their places
}

// Ratio is a figure relative to the first file's. It is not known where one of them
// has fewer than two runs.
type Ratio struct {
	stats.Estimate
	P        float64        // adjusted by Holm for all ratios of one file, speed or cost
	Together stats.Interval // by which the ratio is called other than 1; it holds for all of these together
	Verdict  stats.Verdict  // Better means more
	Least    float64        // the least slowdown that could be shown here, as a part
}

// level is what whole runs of one machine differ by (standard error of the logarithm of
// one run): doc/method.md, "Comparing runs".
const level = 0.04

// medianError is the standard error of the median of normal values relative to that of
// their mean, for large samples: the root of half of pi.
var medianError = math.Sqrt(math.Pi / 2)

// estimate is the median as a logarithm; not known for fewer than two values.
func estimate(values []float64) stats.Estimate {
	var logs []float64
	for _, v := range values {
		if v > 0 {
			logs = append(logs, math.Log(v))
		}
	}
	n := float64(len(logs))
	if n < 2 {
		return stats.Estimate{}
	}
	return stats.Estimate{Log: stats.Median(logs), Err: medianError * math.Sqrt(stats.Variance(logs)/n), DF: n - 1, N: len(logs)}
}

// Compare relates the results of files to those of the first.
func Compare(files []string, results [][]Result) *Comparison {
	c := &Comparison{Files: files}
	var seen []record.Method
	for i, own := range results {
		for _, r := range own {
			known := func(m record.Method) bool { return alike(m, r.Method) }
			if r.Rate.N > 0 && !slices.ContainsFunc(seen, known) {
				seen = append(seen, r.Method)
				c.add(r.Method, results, i)
			}
		}
	}
	for k := range results[1:] {
		c.adjust(func(ch *Change) *Ratio { return &ch.Speed[k] })
		c.adjust(func(ch *Change) *Ratio { return &ch.Cost[k] })
	}
	return c
}

// add compares a method where all files have it, the first one that has it being that
// of a place.
func (c *Comparison) add(m record.Method, results [][]Result, first int) {
	change, only := Change{Method: m}, Only{Method: m}
	var base Result
	for i, own := range results {
		at := slices.IndexFunc(own, func(r Result) bool { return r.Rate.N > 0 && alike(r.Method, m) })
		switch {
		case at < 0:
			continue
		case i == first:
			base = own[at]
		default:
			change.Speed = append(change.Speed, ratio(own[at].speed, base.speed))
			change.Cost = append(change.Cost, ratio(own[at].cost, base.cost))
		}
		only.Files = append(only.Files, i)
	}
	if len(only.Files) < len(results) {
		c.Only = append(c.Only, only)
		return
	}
	c.Changes = append(c.Changes, change)
}

// Between are the results of one pair of implementations, CLIENT:SERVER by their makers,
// with or without version, made ready to be related to those of another pair: without the
// names of programs, and of ciphers where there is only one.
func Between(pair string, results []Result) (chosen []Result) {
	client, server, _ := strings.Cut(pair, ":")
	is := func(program, name string) bool { return program == name || maker(program) == name }
	ciphers := map[string]bool{}
	for _, r := range results {
		if is(r.Client, client) && is(r.Server, server) {
			r.Client, r.Server, r.Mode = "", "", ""
			ciphers[r.Suite.Cipher] = true
			chosen = append(chosen, r)
		}
	}
	for i := range chosen {
		if len(ciphers) == 1 {
			chosen[i].Suite = alg.Suite{}
		}
	}
	return chosen
}

// alike reports whether two methods are compared: the same, with programs of the same
// makers, whatever their versions and the key exchange that these prefer.
func alike(a, b record.Method) bool {
	for _, m := range []*record.Method{&a, &b} {
		m.Client, m.Server, m.Suite = maker(m.Client), maker(m.Server), m.Suite.Bulk()
	}
	return a.Same(b)
}

// maker is the name of an implementation without its version.
func maker(program string) string {
	name, _, _ := strings.Cut(program, " ")
	return name
}

// ratio is a relative to b, with the doubt about the level of both runs.
func ratio(a, b stats.Estimate) Ratio {
	if !a.Known() || !b.Known() {
		return Ratio{P: 1, Verdict: stats.NotEnough}
	}
	return Ratio{Estimate: a.Over(b).WithError(math.Sqrt2*level, 0)}
}

// adjust judges the known ratios of a column together.
func (c *Comparison) adjust(of func(*Change) *Ratio) {
	var known []*Ratio
	var ps []float64
	for i := range c.Changes {
		if r := of(&c.Changes[i]); r.Known() {
			known, ps = append(known, r), append(ps, r.Estimate.P())
		}
	}
	for i, p := range stats.Holm(ps) {
		r := known[i]
		r.P, r.Together = p, r.Adjusted(p)
		r.Verdict = r.Interval().Among(r.Together)
		r.Least = math.Expm1(r.ArmAt(1 - (1-stats.Confidence)/float64(len(known))))
	}
}

// Shows is the least slowdown that any method could show, as a part; 0 where none could
// show any.
func (c *Comparison) Shows() (least float64) {
	for _, ch := range c.Changes {
		for _, r := range ch.Speed {
			if r.Least > 0 && (least == 0 || r.Least < least) {
				least = r.Least
			}
		}
	}
	return least
}
