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
	Verdict stats.Verdict
	ByRest  bool    // it is Rest that the verdict rests on
	Least   float64 // the least slowdown that could be shown here, as a part: 0.03 is 3 % slower

	together stats.Interval // of what the verdict rests on; it holds for all ratios of the table
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

// decides is what the verdict rests on.
func (r *Ratio) decides() stats.Estimate {
	if r.ByRest {
		return r.Rest
	}
	return r.Speed
}

// least is the least slowdown that is shown beside so many others, by itself.
func (r *Ratio) least(ratios int) float64 {
	if r.Rest.Known() {
		ratios *= 2 // it is tested twice
	}
	return math.Expm1(r.Speed.ArmAt(1 - (1-stats.Confidence)/float64(ratios)))
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
		r.P, r.Verdict = p, stats.NotEnough
		if r.Speed.Err > 0 {
			r.Least, r.together = r.least(len(ratios)), r.decides().Adjusted(p)
			r.Verdict = r.Speed.Interval().Among(r.together)
		}
		r.ByRest = r.ByRest && r.Differs()
	}
}

// Differs reports whether the ratio is shown not to be 1.
func (r *Ratio) Differs() bool { return r.Verdict.Differs() }
