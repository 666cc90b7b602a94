package stats_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	moremath "github.com/aclements/go-moremath/stats"
	"pgregory.net/rapid"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
)

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestSummaries(t *testing.T) {
	xs := []float64{2, 4, 4, 4, 5, 5, 7, 9} // mean 40/8; squares of deviations sum to 32
	near(t, "mean", stats.Mean(xs), 5, 1e-12)
	near(t, "variance", stats.Variance(xs), 32.0/7, 1e-12)
	near(t, "median", stats.Median(xs), 4.5, 1e-12)
	near(t, "lower quartile", stats.Quantile(xs, 0.25), 4, 1e-12) // at 0.25·7 = 1.75: 4 + 0.75·0
	near(t, "90 %", stats.Quantile(xs, 0.9), 7.6, 1e-12)          // at 6.3: 7 + 0.3·2
	near(t, "scale", stats.Scale(xs, 4.5), 1.4826022185/2, 1e-9)  // deviations .5 .5 .5 .5 .5 2.5 2.5 4.5
	near(t, "rms", stats.RMS([]float64{3, -4}), math.Sqrt(12.5), 1e-12)
}

func TestNothingGivesZero(t *testing.T) {
	for what, got := range map[string]float64{
		"mean": stats.Mean(nil), "median": stats.Median(nil), "variance": stats.Variance([]float64{7}),
		"scale": stats.Scale(nil, 0),
		"tau":   stats.KendallTau([]float64{1}, []float64{1}),
	} {
		near(t, what, got, 0, 0)
	}
}

// With 6 values, the extremes bound the median: 1 - 2·(1/2)⁶ = 96.9 %. With 10, the second and the
// ninth do: 1 - 2·(1+10)/1024 = 97.9 %.
func TestMedianInterval(t *testing.T) {
	six := stats.MedianInterval([]float64{6, 5, 4, 3, 2, 1})
	if want := (stats.Interval{Value: 3.5, Lo: 1, Hi: 6, N: 6}); six != want {
		t.Errorf("six values: %v, want %v", six, want)
	}
	ten := stats.MedianInterval([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	if want := (stats.Interval{Value: 5.5, Lo: 2, Hi: 9, N: 10}); ten != want {
		t.Errorf("ten values: %v, want %v", ten, want)
	}
}

// Student's 97.5 % quantiles: from printed tables, and where the distribution has that share below.
func TestStudentQuantile(t *testing.T) {
	for degrees, want := range map[float64]float64{1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 30: 2.042, 5000: 1.960} {
		near(t, "quantile", stats.Estimate{Err: 1, DF: degrees}.Arm(), want, 5e-4)
	}
	for _, degrees := range []float64{1, 1.01, 1.5, 3.7, 50, 999} {
		near(t, "share below", moremath.TDist{V: degrees}.CDF(stats.Estimate{Err: 1, DF: degrees}.Arm()), 0.975, 1e-12)
	}
}

// Variances 2 (2 values) and 1 (3 values): (2·1 + 1·2) / 3 = 4/3.
func TestPooled(t *testing.T) {
	deviation, degrees := stats.PooledDeviation([][]float64{{1, 3}, {1, 2, 3}, {9}})
	near(t, "deviation", deviation, math.Sqrt(4.0/3), 1e-12)
	near(t, "degrees", degrees, 3, 0)
	near(t, "arm", stats.Estimate{Log: 9, Err: deviation, DF: degrees}.Arm(), 3.182*math.Sqrt(4.0/3), 1e-3)
}

// Walsh averages of {1, 2, 6}: 1, 1.5, 2, 3.5, 4, 6; their median is 2.75.
func TestHodgesLehmann(t *testing.T) {
	got := stats.HodgesLehmann([]float64{1, 2, 6})
	if want := (stats.Interval{Value: 2.75, Lo: 1, Hi: 6, N: 3}); got != want {
		t.Errorf("got %v, want %v", got, want)
	}
	// n = 8: P(W <= 3) = 5/256 <= 2.5 % < P(W <= 4), so three averages are cut on either side; of
	// the 36 of 1..8 the fourth is 2 (after 1, 1.5, 2).
	eight := stats.HodgesLehmann([]float64{1, 2, 3, 4, 5, 6, 7, 8})
	if want := (stats.Interval{Value: 4.5, Lo: 2, Hi: 7, N: 8}); eight != want {
		t.Errorf("got %v, want %v", eight, want)
	}
}

// Equal errors 1 and 1, 10 degrees each: t = 3/√2 with 20 degrees.
func TestWelch(t *testing.T) {
	ratio := stats.Estimate{Log: 3, Err: 1, DF: 10, N: 11}.Over(stats.Estimate{Err: 1, DF: 10, N: 7})
	near(t, "difference", ratio.Log, 3, 0)
	near(t, "degrees", ratio.DF, 20, 1e-9)
	near(t, "arm", ratio.Arm(), 2.086*math.Sqrt2, 1e-3)
	near(t, "p", ratio.P(), 0.0466, 5e-4)
	near(t, "interval", math.Log(ratio.Interval().Hi), 3+2.086*math.Sqrt2, 1e-3)
	near(t, "interval of the inverse", math.Log(ratio.Inverse().Interval().Lo), -3-2.086*math.Sqrt2, 1e-3)
	near(t, "values", float64(ratio.N), 7, 0)
}

// Errors that count as known: 3 and 4 make 5, and 1.96 of them are 95 %.
func TestEstimateWithKnownErrors(t *testing.T) {
	e := stats.Estimate{Log: 9.8, Err: 3}.WithError(4, 0)
	near(t, "error", e.Err, 5, 1e-12)
	near(t, "arm", e.Arm(), 9.8, 1e-3)
	near(t, "p", e.P(), 0.05, 1e-4)
	near(t, "exact and equal", stats.Estimate{}.P(), 1, 0)
	near(t, "exact and different", stats.Estimate{Log: 1}.P(), 0, 0)
	near(t, "of a known and an unsure error, degrees", stats.Estimate{Err: 1, DF: 4}.WithError(1, 0).DF, 16, 1e-9)
	if (stats.Estimate{}).Known() || !e.Known() {
		t.Error("only the zero value is unknown")
	}
}

// 0.01·4, 0.02·3 (0.06), 0.03·2 (0.06, kept from falling), 0.5.
func TestHolm(t *testing.T) {
	got := stats.Holm([]float64{0.5, 0.01, 0.03, 0.02})
	for i, want := range []float64{0.5, 0.04, 0.06, 0.06} {
		near(t, "adjusted", got[i], want, 1e-12)
	}
}

// Slopes between (0,0), (1,1), (2,2), (3,30): 1, 1, 1, 10, 14.5, 28; median 5.5.
func TestKendallTau(t *testing.T) {
	near(t, "tau", stats.KendallTau([]float64{1, 2, 3, 4}, []float64{1, 2, 4, 3}), 4.0/6, 1e-12)
	near(t, "tau-b", stats.KendallTau([]float64{1, 2, 3, 4}, []float64{1, 2, 3, 3}), 5/math.Sqrt(30), 1e-12)
}

func TestGroupsArePlainWhereTheyArePlain(t *testing.T) {
	xs := make([]stats.Estimate, 6)
	for i, log := range []float64{1, 1.01, 2, 2.005, 2.01, 9} {
		xs[i] = stats.Estimate{Log: log, Err: 0.01}
	}
	if got, want := stats.Group(xs), []int{0, 0, 1, 1, 1, 2}; !slices.Equal(got, want) {
		t.Errorf("groups %v, want %v", got, want)
	}
	for i := range xs {
		xs[i].Log /= 100 // nobody minds a difference of 1 %, or 5 %, however well it is known
		xs[i].Err /= 100
	}
	if got, want := stats.Group(xs), []int{0, 0, 0, 0, 0, 1}; !slices.Equal(got, want) {
		t.Errorf("groups of what makes no difference: %v, want %v", got, want)
	}
	if got := stats.Group(nil); len(got) != 0 {
		t.Errorf("groups of nothing: %v", got)
	}
}

// Two that are closer than their error are never told apart: of a dense row, cut somewhere because
// its ends differ, the next run finds them in the other order.
func TestNoCutBetweenEquals(t *testing.T) {
	var xs []stats.Estimate
	for _, log := range []float64{0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.61, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2} {
		xs = append(xs, stats.Estimate{Log: log, Err: 0.03})
	}
	groups := stats.Group(xs)
	if groups[6] != groups[7] || groups[0] == groups[13] {
		t.Errorf("groups %v", groups)
	}
	for i := range xs {
		xs[i].Err = 0.08 // every neighbor is as close
	}
	if groups := stats.Group(xs); groups[13] != 0 {
		t.Errorf("a chain of equals is cut: %v", groups)
	}
}

func TestLetters(t *testing.T) {
	for group, want := range map[int]string{0: "A", 25: "Z", 26: "AA", 27: "AB", 51: "AZ", 52: "BA"} {
		if got := stats.Letters(group); got != want {
			t.Errorf("group %d is %q, want %q", group, got, want)
		}
	}
}

// Properties that hold for any finite numbers.

func numbers(min int) *rapid.Generator[[]float64] {
	return rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), min, 40)
}

func TestQuantileIsThatOfSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs, q := numbers(1).Draw(t, "xs"), rapid.Float64Range(0, 1).Draw(t, "q")
		before := slices.Clone(xs)
		for _, q := range []float64{q, 0, 0.5, 1} {
			if got, want := stats.Quantile(xs, q), stats.QuantileOf(q)(slices.Sorted(slices.Values(xs))); got != want {
				t.Fatalf("%v at %v: %v, of the sorted %v", xs, q, got, want)
			}
		}
		if !slices.Equal(xs, before) {
			t.Fatal("the argument is changed")
		}
	})
}

func TestOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := numbers(1).Draw(t, "xs")
		shuffled := rapid.Permutation(xs).Draw(t, "shuffled")
		if stats.Median(xs) != stats.Median(shuffled) || stats.HodgesLehmann(xs) != stats.HodgesLehmann(shuffled) ||
			stats.MedianInterval(xs) != stats.MedianInterval(shuffled) {
			t.Fatal("the order changed a result")
		}
	})
}

func TestIntervalsHoldTheirValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		xs := numbers(1).Draw(t, "xs")
		for _, i := range []stats.Interval{
			stats.MedianInterval(xs), stats.HodgesLehmann(xs),
		} {
			if !(i.Lo <= i.Value && i.Value <= i.Hi) || math.IsInf(i.Lo, 0) || math.IsInf(i.Hi, 0) {
				t.Fatalf("%+v", i)
			}
		}
	})
}

func TestPValuesAreProbabilities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ps := rapid.SliceOf(rapid.Float64Range(0, 1)).Draw(t, "ps")
		for i, p := range stats.Holm(ps) {
			if !(p >= ps[i] && p <= 1) {
				t.Fatalf("p %d: %v becomes %v", i, ps[i], p)
			}
		}
	})
}

func TestGroupsAreRuns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := numbers(1).Draw(t, "values")
		slices.Sort(values)
		xs := make([]stats.Estimate, len(values))
		for i, v := range values {
			xs[i] = stats.Estimate{Log: v, Err: rapid.Float64Range(0, 100).Draw(t, "error")}
		}
		groups := stats.Group(xs)
		for i := range groups[1:] {
			if step := groups[i+1] - groups[i]; step != 0 && step != 1 {
				t.Fatalf("groups %v", groups)
			}
		}
	})
}

// Simulations: what the intervals and tests promise must come true.

const runs = 2000

// coverage counts how often an interval held the truth, 0.
func coverage(t *testing.T, what string, interval func(*rand.Rand) stats.Interval) {
	t.Helper()
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	hits := 0
	for range runs {
		if i := interval(random); i.Lo <= 0 && 0 <= i.Hi {
			hits++
		}
	}
	if share := float64(hits) / runs; share < 0.93 || share > 0.98 {
		t.Errorf("%s holds the truth in %.1f %% of simulations, want 93-98 %%", what, 100*share)
	}
}

func normal(random *rand.Rand, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = random.NormFloat64()
	}
	return xs
}

func TestCoverage(t *testing.T) {
	coverage(t, "median of 35", func(r *rand.Rand) stats.Interval { return stats.MedianInterval(normal(r, 35)) })
	coverage(t, "Hodges-Lehmann of 12", func(r *rand.Rand) stats.Interval { return stats.HodgesLehmann(normal(r, 12)) })
	coverage(t, "Hodges-Lehmann of 40", func(r *rand.Rand) stats.Interval { return stats.HodgesLehmann(normal(r, 40)) })
	coverage(t, "pooled over 10 cells of 2", func(r *rand.Rand) stats.Interval {
		groups := make([][]float64, 10)
		for i := range groups {
			groups[i] = normal(r, 2)
		}
		deviation, degrees := stats.PooledDeviation(groups)
		e := stats.Estimate{Log: stats.Mean(groups[0]), Err: deviation / math.Sqrt2, DF: degrees}
		return stats.Interval{Value: e.Log, Lo: e.Log - e.Arm(), Hi: e.Log + e.Arm()}
	})
	coverage(t, "Welch of 5 and 9", func(r *rand.Rand) stats.Interval {
		a, b := normal(r, 5), normal(r, 9)
		of := func(xs []float64) stats.Estimate {
			return stats.Estimate{Log: stats.Mean(xs), Err: math.Sqrt(stats.Variance(xs) / float64(len(xs))), DF: float64(len(xs) - 1)}
		}
		e := of(b).Over(of(a))
		return stats.Interval{Value: e.Log, Lo: e.Log - e.Arm(), Hi: e.Log + e.Arm()}
	})
}

func TestEqualThingsAreOneGroup(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 1))
	one := 0
	for range runs {
		xs := make([]stats.Estimate, 100)
		for i := range xs {
			xs[i] = stats.Estimate{Log: random.NormFloat64(), Err: 1}
		}
		slices.SortFunc(xs, func(a, b stats.Estimate) int {
			if a.Log < b.Log {
				return -1
			}
			return 1
		})
		groups := stats.Group(xs)
		if groups[len(groups)-1] == 0 {
			one++
		}
	}
	if share := float64(one) / runs; share < 0.93 {
		t.Errorf("equal things are one group in %.1f %% of simulations, want at least 93 %%", 100*share)
	}
}

// A note stands with the interval, and alone where there is none.
func TestNoted(t *testing.T) {
	whole := func(v float64) string { return fmt.Sprintf("%.0f", v) }
	for want, i := range map[string]stats.Interval{"12 ms (11-13; 3 times)": {Value: 12, Lo: 11, Hi: 13}, "12 ms (3 times)": {Value: 12, Lo: 12, Hi: 12}} {
		if got := i.Noted(whole, " ms", "3 times"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The margin is what people read.
func TestMarginWords(t *testing.T) {
	if want := fmt.Sprintf("%g %%", 100*stats.Margin); stats.MarginWords != want {
		t.Errorf("%q, want %q", stats.MarginWords, want)
	}
}

// By hand: e¹, e², e⁶ have the median e² and the variance 7, which is that of all; the mean of the
// logarithms is 3.
func TestMedians(t *testing.T) {
	logs := [][]float64{{1, 2, 6}, nil, {4}}
	own := stats.Medians(logs, 0, 0)
	near(t, "median", own[0].Log, 2, 1e-12)
	near(t, "its error", own[0].Err, 1.2533141*math.Sqrt(7.0/3), 1e-6)
	near(t, "degrees", own[0].DF, 2, 0)
	near(t, "mean", stats.Grouped(logs, 0, 0)[0].Log, 3, 1e-12)
	near(t, "of one value, by the others' deviation", own[2].Err, 1.2533141*math.Sqrt(7), 1e-6)
	if own[1].Known() {
		t.Error("nothing has a median")
	}
	near(t, "with a usual deviation of 1, worth 2 degrees", stats.Medians(logs, 1, 2)[2].Err, 1.2533141*2, 1e-6) // √((2·7 + 2·1) / 4)
}

// By hand: 10 (8-14) and 3 (2-4).
func TestArithmeticOfIntervals(t *testing.T) {
	a, b := stats.Interval{Value: 10, Lo: 8, Hi: 14, N: 9}, stats.Interval{Value: 3, Lo: 2, Hi: 4, N: 5}
	for what, c := range map[string]struct{ got, want stats.Interval }{
		"in another unit": {a.Scaled(0.5), stats.Interval{Value: 5, Lo: 4, Hi: 7, N: 9}},
		"the other way":   {a.Scaled(-1), stats.Interval{Value: -10, Lo: -14, Hi: -8, N: 9}},
		"with a constant": {a.Shifted(-8), stats.Interval{Value: 2, Lo: 0, Hi: 6, N: 9}},
		"sum":             {a.Plus(b), stats.Interval{Value: 13, Lo: 10, Hi: 18, N: 5}},
		"ratio":           {a.Over(b), stats.Interval{Value: 10.0 / 3, Lo: 2, Hi: 7, N: 5}},
		"difference":      {a.Less(b), stats.Interval{Value: 7, Lo: 4, Hi: 12, N: 5}},
		"inverse":         {stats.Interval{Value: 4, Lo: 2, Hi: 8, N: 9}.Inverse(), stats.Interval{Value: 0.25, Lo: 0.125, Hi: 0.5, N: 9}},
		"of what falls":   {a.Mapped(func(v float64) float64 { return 20 - v }), stats.Interval{Value: 10, Lo: 6, Hi: 12, N: 9}},
		"nothing":         {stats.Interval{}.Scaled(7), stats.Interval{}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	e := stats.Interval{Value: 10, Lo: 8, Hi: 12, N: 9}.Estimate() // 20 % either way are 1.96 errors
	near(t, "estimate", e.Log, math.Log(10), 1e-12)
	near(t, "its error", e.Err, 0.2/1.959964, 1e-6)
	if (stats.Interval{}).Estimate().Known() {
		t.Error("nothing is an estimate")
	}
}
