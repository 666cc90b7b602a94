package methods

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Comparison relates the methods of several files to those of the first.
type Comparison struct {
	Files   []string // the first is what the others are related to
	Changes []Change // of the methods that all files have figures of
	Lacking int      // methods that not all of them have
}

// Change is a method, and what became of it in each file but the first.
type Change struct {
	record.Method
	Speed []Ratio // above 1: faster
	Cost  []Ratio // of CPU time per byte, both sides together; above 1: more of it
}

// Ratio is a figure relative to the first file's. It is not known where one of them
// has fewer than two runs.
type Ratio struct {
	stats.Estimate
	P float64 // adjusted by Holm for all ratios of one file, speed or cost
}

// Shown reports whether the ratio differs from 1 by more than chance.
func (r Ratio) Shown() bool { return r.Known() && r.P < 1-stats.Confidence }

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
	for _, base := range results[0] {
		if base.Rate.N == 0 {
			continue
		}
		change := Change{Method: base.Method}
		for _, others := range results[1:] {
			again := func(r Result) bool { return r.Rate.N > 0 && r.Same(base.Method) }
			if i := slices.IndexFunc(others, again); i >= 0 {
				change.Speed = append(change.Speed, ratio(others[i].speed, base.speed))
				change.Cost = append(change.Cost, ratio(others[i].cost, base.cost))
			}
		}
		if len(change.Speed) < len(results)-1 {
			c.Lacking++
			continue
		}
		c.Changes = append(c.Changes, change)
	}
	for k := range results[1:] {
		c.adjust(func(ch *Change) *Ratio { return &ch.Speed[k] })
		c.adjust(func(ch *Change) *Ratio { return &ch.Cost[k] })
	}
	return c
}

// ratio is a relative to b, with the doubt about the level of both runs.
func ratio(a, b stats.Estimate) Ratio {
	if !a.Known() || !b.Known() {
		return Ratio{P: 1}
	}
	return Ratio{Estimate: a.Over(b).WithError(math.Sqrt2*level, 0)}
}

// adjust gives the known ratios of a column their p values.
func (c *Comparison) adjust(of func(*Change) *Ratio) {
	var known []*Ratio
	var ps []float64
	for i := range c.Changes {
		if r := of(&c.Changes[i]); r.Known() {
			known, ps = append(known, r), append(ps, r.Estimate.P())
		}
	}
	for i, p := range stats.Holm(ps) {
		known[i].P = p
	}
}

// Worst names the methods that are shown to be slower than in the first file, by at least
// percent, slowest first: what a regression gate asks for.
func (c *Comparison) Worst(percent float64, name func(record.Method) string) []string {
	type found struct {
		text  string
		speed float64
	}
	var all []found
	for _, ch := range c.Changes {
		for k, r := range ch.Speed {
			if r.Shown() && r.Value() <= 1/(1+percent/100) {
				all = append(all, found{fmt.Sprintf("%s in %s: %.1f %% slower", name(ch.Method), c.Files[k+1], 100*(1/r.Value()-1)), r.Value()})
			}
		}
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.speed, b.speed) })
	var texts []string
	for _, f := range all {
		texts = append(texts, f.text)
	}
	return texts
}
