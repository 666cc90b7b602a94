package stats_test

import (
	"math"
	"testing"

	"sshpace/internal/base/stats"
)

// TestRandomEffects: 1 and 3 with variances of 1 have 2 in common; Q is 2, so that the variance
// between them is (2-1)/(2-1), half of what they differ by is kept, and the mean has a variance of
// 1/(1/2+1/2). A third, of which nothing is known, has the mean, in doubt by both variances.
func TestRandomEffects(t *testing.T) {
	for _, test := range []struct {
		means, variances, effects, errs []float64
	}{
		{[]float64{1, 3}, []float64{1, 1}, []float64{1.5, 2.5}, []float64{math.Sqrt(0.75), math.Sqrt(0.75)}},
		{[]float64{1, 3, 0}, []float64{1, 1, math.Inf(1)}, []float64{1.5, 2.5, 2}, []float64{math.Sqrt(0.75), math.Sqrt(0.75), math.Sqrt(2)}},
		{[]float64{1, 2}, []float64{1, 1}, []float64{1.5, 1.5}, []float64{math.Sqrt(0.5), math.Sqrt(0.5)}}, // chance
		{[]float64{5}, []float64{4}, []float64{5}, []float64{2}},
		{[]float64{0}, []float64{math.Inf(1)}, []float64{0}, []float64{0}},
		{nil, nil, []float64{}, []float64{}},
	} {
		effects, errs := stats.RandomEffects(test.means, test.variances)
		for k := range test.means {
			near(t, "effect", effects[k], test.effects[k], 1e-9)
			near(t, "error", errs[k], test.errs[k], 1e-9)
		}
	}
}
