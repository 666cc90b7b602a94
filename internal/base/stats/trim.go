package stats

import "math"

// Trimmed is the mean of the values between two quantiles of a sample. Values outside count as the
// ends Lo and Hi.
type Trimmed struct {
	Mean, Lo, Hi float64
	share        float64 // of the sample that is averaged
}

// Trim averages sorted values from the first quantile to the second, at least one of them; zero for
// none.
func Trim(sorted []float64, low, high float64) Trimmed {
	n := float64(len(sorted))
	if n == 0 {
		return Trimmed{}
	}
	const rounding = 1e-9 // of a quantile that falls between two values
	from := int(low*n + rounding)
	to := max(from+1, int(high*n+rounding))
	return Trimmed{Mean(sorted[from:to]), sorted[from], sorted[to-1], high - low}
}

// Influences returns the influence of each value on the mean, times their number: the variance of
// these is that of the mean, times the number of values (winsorized values, by Tukey and
// McLaughlin, Sankhya A 25, 1963).
func (t Trimmed) Influences(xs []float64) []float64 {
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = t.Influence(x)
	}
	return out
}

// Influence returns the influence of one value x on the mean; see Influences.
func (t Trimmed) Influence(x float64) float64 { return math.Max(t.Lo, math.Min(t.Hi, x)) / t.share }
