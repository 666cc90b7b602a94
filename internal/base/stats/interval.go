package stats

import (
	"math"
	"slices"
	"strconv"

	moremath "github.com/aclements/go-moremath/stats"
)

// Interval is an estimate with its 95 % interval and the number of independent values that it rests
// on. Lo <= Value <= Hi.
type Interval struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo"`
	Hi    float64 `json:"hi"`
	N     int     `json:"n"`
}

// OrNil returns nil where nothing was measured.
func (i *Interval) OrNil() *Interval {
	if i == nil || i.N == 0 {
		return nil
	}
	return i
}

// Exactly returns a figure without an interval.
func Exactly(v float64) *Interval { return &Interval{Value: v, Lo: v, Hi: v} }

// Shown prints a value with its interval, if it has one: "12.3 ms (11.9-12.8)". All output uses
// this notation.
func (i Interval) Shown(figure func(float64) string, unit string) string {
	if bounds := i.Bounds(figure); bounds != "" {
		unit += " " + bounds
	}
	return figure(i.Value) + unit
}

// Noted prints a value with its interval and a note: "12.3 ms (11.9-12.8; 3 times)".
func (i Interval) Noted(figure func(float64) string, unit, note string) string {
	if bounds := i.Bounds(figure); bounds != "" {
		note = bounds[1:len(bounds)-1] + "; " + note
	}
	return figure(i.Value) + unit + " (" + note + ")"
}

// Bounds prints the interval alone, "(11.9-12.8)"; "" where there is none.
func (i Interval) Bounds(figure func(float64) string) string {
	if i.Lo == i.Hi {
		return ""
	}
	to := "-"
	if i.Lo < 0 {
		to = " to "
	}
	return "(" + figure(i.Lo) + to + figure(i.Hi) + ")"
}

// Times prints a ratio: "1.59x (1.24-2.05)".
func (i Interval) Times() string { return i.Shown(i.Ratio(), "x") }

// Ratio returns the printer of a ratio: with three decimals where the interval is narrow enough for
// them to mean something.
func (i Interval) Ratio() func(float64) string {
	digits := 2
	if i.Lo != i.Hi && i.Hi-i.Lo < 0.05 {
		digits = 3
	}
	return func(v float64) string {
		switch {
		case v > 0 && v < 0.1:
			return strconv.FormatFloat(v, 'g', 2, 64)
		case v >= 1000:
			return "over 1000"
		case v >= 100:
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	}
}

// anything is the largest quotient of the ends of an interval; beyond it a ratio is useless.
const anything = 30

// Says reports whether a ratio is known well enough to be shown.
func (i Interval) Says() bool { return i.Lo > 0 && i.Hi <= anything*i.Lo }

// Mapped applies a monotonic function to the quantity and its bounds.
func (i Interval) Mapped(f func(float64) float64) Interval {
	i.Value, i.Lo, i.Hi = f(i.Value), f(i.Lo), f(i.Hi)
	if i.Lo > i.Hi {
		i.Lo, i.Hi = i.Hi, i.Lo
	}
	return i
}

// Exp maps an interval of logarithms back to the original scale.
func (i Interval) Exp() Interval { return i.Mapped(math.Exp) }

// Scaled multiplies the quantity by a factor, for another unit.
func (i Interval) Scaled(by float64) Interval {
	return i.Mapped(func(v float64) float64 { return v * by })
}

// Shifted adds a constant to the quantity.
func (i Interval) Shifted(by float64) Interval {
	return i.Mapped(func(v float64) float64 { return v + by })
}

// Inverse returns 1 / quantity, for a positive one.
func (i Interval) Inverse() Interval {
	return i.Mapped(func(v float64) float64 { return 1 / v })
}

// Plus returns the sum of two quantities. Its interval is as wide as both together: they need not
// be independent. It rests on the smaller number of values.
func (i Interval) Plus(o Interval) Interval {
	return Interval{i.Value + o.Value, i.Lo + o.Lo, i.Hi + o.Hi, min(i.N, o.N)}
}

// Less returns the difference of two quantities, with an interval as wide as both together.
func (i Interval) Less(o Interval) Interval { return i.Plus(o.Scaled(-1)) }

// Over returns the ratio of two positive quantities, with an interval as wide as both together.
func (i Interval) Over(o Interval) Interval {
	return Interval{i.Value / o.Value, i.Lo / o.Hi, i.Hi / o.Lo, min(i.N, o.N)}
}

// Estimate returns the estimate of a positive quantity that has about this interval, with its error
// taken as known.
func (i Interval) Estimate() Estimate {
	if i.Value <= 0 {
		return Estimate{}
	}
	return Estimate{Log: math.Log(i.Value), Err: (i.Hi - i.Lo) / 2 / i.Value / normalQuantile, N: i.N}
}

// HalfWidth returns the larger arm of the interval relative to its value; 0 where the value is 0.
func (i Interval) HalfWidth() float64 {
	if i.Value == 0 {
		return 0
	}
	return math.Max(i.Hi-i.Value, i.Value-i.Lo) / math.Abs(i.Value)
}

// MinExact is the smallest number of values for which the order statistics of a sample bound its
// median with 95 % confidence: 2 · ½⁶ < 5 %.
const MinExact = 6

// MedianInterval returns the median of xs with the interval between two order statistics (David and
// Nagaraja, Order Statistics, 7.1), which makes no assumption on the distribution. Below MinExact
// values no such interval exists, and the one returned is as wide as the sample: use an Estimate
// with the deviation of PooledDeviation.
func MedianInterval(xs []float64) Interval {
	if len(xs) == 0 {
		return Interval{}
	}
	sorted := slices.Sorted(slices.Values(xs))
	if len(xs) < MinExact {
		return Interval{Median(xs), sorted[0], sorted[len(sorted)-1], len(xs)}
	}
	median, lo, hi := moremath.QuantileCI(len(sorted), 0.5, Confidence).SampleCI(moremath.Sample{Xs: sorted, Sorted: true})
	return Interval{median, lo, hi, len(xs)}
}

// Bounded returns an interval of a median, without its bounds where they are only the range of
// fewer values than MinExact.
func (i Interval) Bounded() Interval {
	if i.N < MinExact {
		i.Lo, i.Hi = i.Value, i.Value
	}
	return i
}

// MedianEfficiency is the error of a median relative to that of a mean, for normal values: √(π/2).
// For few values it is less.
const MedianEfficiency = 1.2533141373155003

// studentQuantile returns the standard errors on either side of a two-sided interval at a
// confidence, by Student's t distribution. Degrees of freedom below 1 count as 1.
func studentQuantile(degrees, confidence float64) float64 {
	degrees = math.Max(1, degrees)
	x, p := math.Sqrt2*math.Erfcinv(1-confidence), 1-(1-confidence)/2
	if degrees > 1000 {
		return x
	}
	// Newton's method, from the normal quantile: above the median the distribution is concave, so
	// that no step goes beyond the quantile.
	t := moremath.TDist{V: degrees}
	for {
		step := (p - t.CDF(x)) / t.PDF(x)
		if x += step; step <= 1e-14*x {
			return x
		}
	}
}

// normalQuantile is the 97.5 % quantile of the standard normal distribution.
const normalQuantile = 1.959963984540054

// PooledDeviation returns the standard deviation within groups that share one, and its degrees of
// freedom. A cell with one or two values borrows it from all others. Zero degrees where no group
// has two values.
func PooledDeviation(groups [][]float64) (deviation, degrees float64) {
	sum := 0.0
	for _, xs := range groups {
		if len(xs) > 1 {
			sum += Variance(xs) * float64(len(xs)-1)
			degrees += float64(len(xs) - 1)
		}
	}
	if degrees == 0 {
		return 0, 0
	}
	return math.Sqrt(sum / degrees), degrees
}

// Grouped returns the means of groups of logarithms that share one deviation: that of all groups,
// shrunk towards the usual one, which counts as prior degrees of freedom.
func Grouped(groups [][]float64, usual, prior float64) []Estimate {
	own, degrees := PooledDeviation(groups)
	deviation, degrees := Shrink(own, degrees, usual, prior)
	out := make([]Estimate, len(groups))
	for i, logs := range groups {
		if n := len(logs); n > 0 {
			out[i] = Estimate{Log: Mean(logs), Err: deviation / math.Sqrt(float64(n)), DF: degrees, N: n}
		}
	}
	return out
}

// Medians is Grouped with medians, and with the errors that medians of normal values have.
func Medians(groups [][]float64, usual, prior float64) []Estimate {
	out := Grouped(groups, usual, prior)
	for i, logs := range groups {
		if len(logs) > 0 {
			out[i].Log, out[i].Err = Median(logs), out[i].Err*MedianEfficiency
		}
	}
	return out
}

// Shrink moves the deviation of a group towards the common one, which counts as prior degrees of
// freedom (the moderated t statistic of Smyth, Statistical Applications in Genetics and Molecular
// Biology 3, 2004, whose prior is given here).
func Shrink(own, degrees, common, prior float64) (deviation, sum float64) {
	if sum = degrees + prior; sum <= 0 {
		return 0, 0
	}
	return math.Sqrt((degrees*own*own + prior*common*common) / sum), sum
}
