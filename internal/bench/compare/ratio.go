package compare

import (
	"math"
	"slices"

	"sshpace/internal/base/stats"
)

// Ratio is a speed relative to the first file.
type Ratio struct {
	Speed        stats.Estimate // with the doubt about the level of both runs: how fast the machine was at all. N: cells, or connections, that it rests on
	Rest         stats.Estimate // the same relative to all other lines, which is free of that doubt; unknown where there are none
	stats.Judged                // among all ratios of the same table
}

// complete finishes ratios of lines with errors of their own: each against the
// mean of the others, with the doubt about single lines, and by itself with that
// about the level.
func complete(ratios []*Ratio, level, line float64) {
	sum, variance := 0.0, 0.0
	for _, r := range ratios {
		sum += r.Speed.Log
		variance += r.Speed.Err * r.Speed.Err
	}
	others := float64(len(ratios) - 1)
	for _, r := range ratios {
		if own := r.Speed; others > 0 && level > 0 {
			left := math.Sqrt(math.Max(0, variance-own.Err*own.Err)) / others
			r.Rest = own.Over(stats.Estimate{Log: (sum - own.Log) / others, Err: math.Hypot(left, line), N: own.N})
		}
		r.Speed = r.Speed.WithError(level, 0)
	}
}

// judge gives the verdicts of one table, to what is known.
func judge(ratios []*Ratio) {
	ratios = slices.DeleteFunc(ratios, func(r *Ratio) bool { return !r.Speed.Known() })
	speeds, rests := make([]stats.Estimate, len(ratios)), make([]stats.Estimate, len(ratios))
	for i, r := range ratios {
		speeds[i], rests[i] = r.Speed, r.Rest
	}
	for i, judged := range stats.JudgeBeside(speeds, rests) {
		ratios[i].Judged = judged
	}
}

// Differs reports whether the ratio is shown not to be 1.
func (r *Ratio) Differs() bool { return r.Verdict.Differs() }

// least is the lesser of the least slowdown that the ratio could show, as a part, and another one; 0 is none.
func (r *Ratio) least(other float64) float64 {
	if other == 0 || r.Least > 0 && r.Least < other {
		return r.Least
	}
	return other
}
