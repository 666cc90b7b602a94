package compare

import (
	"math"

	"sshpace/internal/base/stats"
)

// Ratio is a speed relative to the first file.
type Ratio struct {
	Speed        stats.Estimate // with the doubt about the level of both runs: how fast the machine was at all. N: cells, or connections, that it rests on
	Rest         stats.Estimate // the same relative to all other lines, which is free of that doubt; unknown where there are none
	stats.Judged                // among all ratios of the same table
}

// complete finishes the ratios of file k after the first in lines with errors of their own: each
// against the mean of the others, with the doubt about single lines, and by itself with that
// about the level.
func complete(lines [][]Ratio, k int, level, line float64) {
	sum, variance := 0.0, 0.0
	for _, ratios := range lines {
		sum += ratios[k].Speed.Log
		variance += ratios[k].Speed.Err * ratios[k].Speed.Err
	}
	others := float64(len(lines) - 1)
	for _, ratios := range lines {
		r := &ratios[k]
		if own := r.Speed; others > 0 && level > 0 {
			left := math.Sqrt(math.Max(0, variance-own.Err*own.Err)) / others
			r.Rest = own.Over(stats.Estimate{Log: (sum - own.Log) / others, Err: math.Hypot(left, line), N: own.N})
		}
		r.Speed = r.Speed.WithError(level, 0)
	}
}

// judge gives the verdicts of the lines of one table, to what is known.
func judge(lines [][]Ratio) {
	var known []*Ratio
	var speeds, rests []stats.Estimate
	for _, ratios := range lines {
		for k := range ratios {
			if r := &ratios[k]; r.Speed.Known() {
				known, speeds, rests = append(known, r), append(speeds, r.Speed), append(rests, r.Rest)
			}
		}
	}
	for i, judged := range stats.JudgeBeside(speeds, rests) {
		known[i].Judged = judged
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
