package compare

import (
	"math"

	"sshpace/internal/base/stats"
)

// Ratio is a speed relative to the first file.
type Ratio struct {
	Speed   stats.Estimate // with the doubt about the level of both runs: how fast the machine was at all. N: cells, or connections, that it rests on
	Rest    stats.Estimate // the same relative to all other lines, which is free of that doubt; unknown where there are none
	P       float64        // adjusted by Holm for all ratios of the same table
	Verdict Verdict
	ByRest  bool // it is Rest that the verdict rests on
}

// indifferent is the relative difference below which nothing matters
// (indifference zone).
const indifferent = 0.02

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

// test gives the p value of a ratio, not adjusted yet. What differs from the
// rest, in the same direction, differs whatever the level was; of two chances the
// better one counts twice (Bonferroni).
func (r *Ratio) test() {
	r.P = pValue(r.Speed)
	if !r.Rest.Known() {
		return
	}
	rest := 1.0
	if (r.Rest.Log > 0) == (r.Speed.Log > 0) {
		rest = pValue(r.Rest)
	}
	r.ByRest = rest < r.P
	r.P = math.Min(1, 2*math.Min(r.P, rest))
}

// pValue of a ratio that is 1 in truth. Without an error nothing is known of it.
func pValue(e stats.Estimate) float64 {
	if e.Err == 0 {
		return 1
	}
	return e.P()
}

// judge tests the ratios of one table, adjusts their p values and gives the
// verdicts.
func judge(ratios []*Ratio) {
	ps := make([]float64, len(ratios))
	for i, r := range ratios {
		r.test()
		ps[i] = r.P
	}
	for i, p := range stats.Holm(ps) {
		r := ratios[i]
		r.P = p
		interval := r.Speed.Interval()
		switch {
		case p < 1-stats.Confidence && r.Speed.Log > 0:
			r.Verdict = Faster
		case p < 1-stats.Confidence:
			r.Verdict = Slower
		case interval.Lo > 1-2*indifferent && interval.Hi < 1+2*indifferent:
			r.Verdict = Same
		default:
			r.Verdict = Unclear
		}
		r.ByRest = r.ByRest && (r.Verdict == Faster || r.Verdict == Slower)
	}
}
