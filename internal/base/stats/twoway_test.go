package stats_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
)

// layout has one reading in each cell: what rows and columns add, and noise.
func layout(rows, cols []float64, noise func() float64) (all []stats.Reading) {
	for r, row := range rows {
		for c, col := range cols {
			all = append(all, stats.Reading{Row: r, Col: c, Value: row + col + noise()})
		}
	}
	return all
}

func TestTwoWayFindsWhatAdds(t *testing.T) {
	rows, cols := []float64{-1, 0, 3}, []float64{10, 20, 35, 31}
	exact := layout(rows, cols, func() float64 { return 0 })
	for name, location := range map[string]stats.Location{"median": stats.QuantileOf(0.5), "trimmed mean": stats.Middle, "mean": stats.Mean} {
		holes := slices.DeleteFunc(slices.Clone(exact), func(r stats.Reading) bool { return r.Row == 1 && r.Col == 2 })
		for _, readings := range [][]stats.Reading{exact, holes} {
			got := stats.TwoWay(readings, location, location)
			for c, want := range cols {
				near(t, name, got.Cols[c]-got.Cols[0], want-cols[0], 1e-3)
			}
			for _, r := range readings {
				near(t, name+", left", got.Left(r), 0, 1e-3)
			}
		}
	}
}

// One wild reading in twenty moves no column, and nothing at all is no panic.
func TestTwoWayIsRobust(t *testing.T) {
	random := rand.New(rand.NewPCG(seedtest.Of(t), 7))
	wild := layout(make([]float64, 20), []float64{0, 1, 2}, func() float64 { return 0.01 * random.NormFloat64() })
	wild[3].Value, wild[25].Value = 1000, -1000
	got := stats.TwoWay(wild, stats.QuantileOf(0.5), stats.Middle)
	for c := range 3 {
		near(t, "column", got.Cols[c], float64(c), 0.02)
	}
	if empty := stats.TwoWay(nil, stats.Middle, stats.Middle); len(empty.Rows)+len(empty.Cols) != 0 {
		t.Errorf("of nothing: %v", empty)
	}
	if gap := stats.TwoWay([]stats.Reading{{Row: 2, Col: 1, Value: 5}}, stats.Middle, stats.Middle); !math.IsNaN(gap.Cols[0]) || gap.Cols[1] != 5 {
		t.Errorf("of one reading: %v", gap)
	}
}

// The deviation of a mean is that of the textbook, and of the same seed the same.
func TestBootstrapOfAMean(t *testing.T) {
	seed := seedtest.Of(t)
	for _, n := range []int{20, 40} {
		random := rand.New(rand.NewPCG(seed, uint64(n)))
		xs := normal(random, n)
		estimate := func(random *rand.Rand) []float64 {
			sum, number := 0.0, 0
			for i, times := range stats.Resample(random, n) {
				sum, number = sum+float64(times)*xs[i], number+times
			}
			return []float64{sum / float64(number)}
		}
		errs, _ := stats.Beside(stats.Bootstrap(4000, estimate))
		got := errs[0]
		near(t, "deviation", got, math.Sqrt(stats.Variance(xs)/float64(n)), 0.08*got)
		if again, _ := stats.Beside(stats.Bootstrap(4000, estimate)); again[0] != got {
			t.Errorf("of %d the same seeds give %g and %g", n, got, again[0])
		}
	}
}

// Where rows drift and some readings are wild, intervals of differences between columns hold the
// truth as often as they say.
func TestTwoWayCoverage(t *testing.T) {
	const rows = 12
	coverage(t, "two-way fit", func(random *rand.Rand) stats.Interval {
		drift, level := make([]float64, rows), 0.0
		for i := range drift {
			level += 0.05 * random.NormFloat64()
			drift[i] = level
		}
		readings := layout(drift, []float64{0, 0, 0}, func() float64 {
			if random.IntN(25) == 0 {
				return 0.5 * random.NormFloat64()
			}
			return 0.05 * random.NormFloat64()
		})
		difference := func(readings []stats.Reading) float64 {
			fit := stats.TwoWay(readings, stats.Middle, stats.Middle)
			return fit.Cols[1] - fit.Cols[0]
		}
		errs, _ := stats.Beside(stats.Bootstrap(40, func(random *rand.Rand) []float64 {
			var sample []stats.Reading
			for row, times := range stats.Resample(random, rows) {
				sample = append(sample, slices.Repeat(readings[3*row:3*row+3], times)...)
			}
			return []float64{difference(sample)}
		}))
		value, arm := difference(readings), stats.Estimate{Err: 1, DF: rows - 1}.Arm()*errs[0]
		return stats.Interval{Value: value, Lo: value - arm, Hi: value + arm, N: rows}
	})
}

// What estimates move by together is the level's, and what each moves by alone its own.
func TestBeside(t *testing.T) {
	errs, level := stats.Beside(stats.Bootstrap(4000, func(random *rand.Rand) []float64 {
		all := 3 * random.NormFloat64()
		return []float64{all + random.NormFloat64(), all + random.NormFloat64(), all + random.NormFloat64(), math.NaN()}
	}))
	for i, want := range []float64{1, 1, 1, 0} {
		near(t, "of one", errs[i], want, 0.05)
	}
	near(t, "of the level", level, math.Sqrt(9+1.0/3), 0.15)
}
