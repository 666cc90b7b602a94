package rank

import (
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Control is one hidden A/A comparison: one key exchange under two names.
type Control struct {
	A         alg.Suite `json:"a"`
	B         alg.Suite `json:"b"`
	Ratio     Quantity  `json:"ratio"`     // B relative to A
	Separated bool      `json:"separated"` // the run took them for different: it should not
}

// separate tests each control with a deviation pooled over all of them.
func separate(controls []Control, groups [][]float64) {
	deviation, degrees := deviationOf(groups)
	ratios := make([]stats.Estimate, len(groups))
	for i, logs := range groups {
		ratios[i] = stats.Estimate{Log: stats.Mean(logs), Err: deviation / math.Sqrt(float64(len(logs))), DF: degrees, N: len(logs)}
	}
	for i, judged := range stats.Judge(ratios) {
		controls[i].Ratio, controls[i].Separated = ratios[i].Interval(), judged.Verdict.Differs()
	}
}
