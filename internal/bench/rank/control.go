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

// separate tests each control with a deviation pooled over all of them, and
// Holm's correction, as the cells of the ranking are told apart: by more than
// a tie, in percent, and significantly.
func separate(controls []Control, groups [][]float64, tie float64) {
	deviation, degrees := stats.PooledDeviation(groups)
	ps := make([]float64, len(groups))
	for i, logs := range groups {
		controls[i].Ratio = stats.PooledInterval(logs, deviation, degrees).Exp()
		ps[i] = 1
		if degrees > 0 {
			ps[i] = stats.Estimate{Log: stats.Mean(logs), Err: deviation / math.Sqrt(float64(len(logs))), DF: degrees}.P()
		}
	}
	for i, p := range stats.Holm(ps) {
		off := math.Abs(math.Log(controls[i].Ratio.Value))
		controls[i].Separated = p < 1-stats.Confidence && off > math.Log1p(math.Max(tie, minEffect)/100)
	}
}
