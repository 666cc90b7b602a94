package rank

import (
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Control is one hidden A/A comparison: one key exchange under two names.
type Control struct {
	A, B      alg.Suite
	Ratio     Quantity // B relative to A
	Separated bool     // the run took them for different: it should not
}

// separate tests each control with a deviation pooled over all of them, by the rule of all
// verdicts, and Holm's correction.
func separate(controls []Control, groups [][]float64) {
	deviation, degrees := withPrior(stats.PooledDeviation(groups))
	ratios, ps := make([]stats.Estimate, len(groups)), make([]float64, len(groups))
	for i, logs := range groups {
		ratios[i] = stats.Estimate{Log: stats.Mean(logs), Err: deviation / math.Sqrt(float64(len(logs))), DF: degrees, N: len(logs)}
		controls[i].Ratio, ps[i] = ratios[i].Interval(), 1
		if degrees > 0 {
			ps[i] = ratios[i].P()
		}
	}
	for i, p := range stats.Holm(ps) {
		if p < 1-stats.Confidence && ratios[i].Err > 0 {
			v := controls[i].Ratio.Among(ratios[i].Adjusted(p))
			controls[i].Separated = v == stats.Better || v == stats.Worse
		}
	}
}
