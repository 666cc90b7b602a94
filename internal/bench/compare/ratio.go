package compare

import (
	"encoding/json"
	"math"

	"sshpace/internal/base/stats"
)

// Ratio is a speed relative to the first file.
type Ratio struct {
	Speed        stats.Estimate // with the doubt about the level of both runs: how fast the machine was at all. N: number of cells, or connections
	Rest         stats.Estimate // relative to all other lines, which is free of that doubt; unknown where there are none
	stats.Judged                // among all ratios of the same table
}

// MarshalJSON writes the ratio with its verdict, for programs; above 1 is faster.
func (r Ratio) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Speed   stats.Interval  `json:"speed_ratio"` // against the first file
		Rest    *stats.Interval `json:"speed_ratio_to_rest,omitempty"`
		P       float64         `json:"p_holm"`
		Verdict string          `json:"verdict"` // faster, slower, equal (within 5 %) or not enough data
		ByRest  bool            `json:"verdict_by_rest,omitempty"`
		Least   float64         `json:"least_slowdown_shown_pct,omitempty"`
	}{r.Speed.Interval(), r.Rest.OrNil(), r.P, r.Verdict.Called("faster", "slower"), r.ByRest, 100 * r.Least})
}

// complete finishes the ratios of file k after the first in lines with their own errors: each
// against the mean of the others, with the doubt about single lines, and by itself with the doubt
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

// ofFile returns the ratios of file k after the first, line by line, to be judged by themselves.
func ofFile(lines [][]Ratio, k int) (out [][]Ratio) {
	for _, ratios := range lines {
		out = append(out, ratios[k:k+1])
	}
	return out
}

// judge gives verdicts to the known lines of one table.
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

// least returns the smaller of the smallest slowdown that the ratio could show, as a share, and
// another one; 0 is none.
func (r *Ratio) least(other float64) float64 {
	if other == 0 || r.Least > 0 && r.Least < other {
		return r.Least
	}
	return other
}
