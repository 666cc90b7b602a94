package stats

import (
	"math"

	moremath "github.com/aclements/go-moremath/stats"
)

// Estimate is an estimate of a positive quantity: its natural logarithm, the standard error of
// that, the degrees of freedom of the error (0: so many that the error counts as known), and the
// number of values.
type Estimate struct {
	Log, Err float64
	DF       float64
	N        int
}

// Known reports whether there is an estimate; false for the zero value.
func (e Estimate) Known() bool { return e.N > 0 || e.Err > 0 }

// Repeated returns the estimate of the result of another run with the same error.
func (e Estimate) Repeated() Estimate {
	e.Err *= math.Sqrt2
	return e
}

// Value returns the quantity itself.
func (e Estimate) Value() float64 { return math.Exp(e.Log) }

// Arm returns half of the 95 % interval of the logarithm (Student).
func (e Estimate) Arm() float64 { return e.ArmAt(Confidence) }

// ArmAt returns half of the interval of the logarithm at another confidence.
func (e Estimate) ArmAt(confidence float64) float64 {
	if e.DF <= 0 {
		return math.Sqrt2 * math.Erfcinv(1-confidence) * e.Err
	}
	return studentQuantile(e.DF, confidence) * e.Err
}

// Interval returns the quantity with its 95 % interval.
func (e Estimate) Interval() Interval { return e.within(e.Arm()) }

// OrNil returns the same interval as Interval, or nil where nothing is known.
func (e Estimate) OrNil() *Interval {
	if !e.Known() {
		return nil
	}
	i := e.Interval()
	return &i
}

func (e Estimate) within(arm float64) Interval {
	return Interval{Value: e.Log, Lo: e.Log - arm, Hi: e.Log + arm, N: e.N}.Exp()
}

// Adjusted returns the interval that excludes 1 exactly if p is below 5 %; p is the p value of e,
// adjusted for all tests made together. It is known only for Err > 0.
func (e Estimate) Adjusted(p float64) Interval {
	return e.within(e.ArmAt(1 - (1-Confidence)*e.P()/p))
}

// Inverse returns the estimate of 1 / quantity.
func (e Estimate) Inverse() Estimate {
	e.Log = -e.Log
	return e
}

// Over returns the ratio of e to an independent estimate. Its degrees of freedom are those of Welch
// and Satterthwaite (Welch, Biometrika 34, 1947), and it rests on the smaller number of values.
func (e Estimate) Over(o Estimate) Estimate {
	e = e.WithError(o.Err, o.DF)
	e.Log -= o.Log
	e.N = min(e.N, o.N)
	return e
}

// WithError adds an independent error with its degrees of freedom.
func (e Estimate) WithError(err, df float64) Estimate {
	variance := e.Err*e.Err + err*err
	doubt := doubt(e.Err, e.DF) + doubt(err, df)
	e.Err, e.DF = math.Sqrt(variance), 0
	if doubt > 0 {
		e.DF = variance * variance / doubt
	}
	return e
}

// doubt returns the term of an error with few degrees of freedom in the denominator of Welch and
// Satterthwaite's formula.
func doubt(err, df float64) float64 {
	if df <= 0 {
		return 0
	}
	return math.Pow(err, 4) / math.Max(1, df)
}

// P returns the two-sided p value of the test that the quantity is 1. An error of zero is exact.
func (e Estimate) P() float64 {
	if e.Err == 0 {
		return pIf(e.Log != 0)
	}
	t := math.Abs(e.Log) / e.Err
	if e.DF <= 0 {
		return math.Max(leastP, math.Erfc(t/math.Sqrt2))
	}
	return math.Min(1, math.Max(leastP, 2*(1-moremath.TDist{V: math.Max(1, e.DF)}.CDF(t))))
}

// leastP replaces p values that are too small to compute, so that multiples of them remain in
// proportion.
const leastP = 1e-300

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
