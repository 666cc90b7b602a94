package stats

import (
	"math"
	"math/rand/v2"
	"slices"

	moremath "github.com/aclements/go-moremath/stats"
	"golang.org/x/perf/benchmath"
)

// MinExact is the smallest number of values for which the order statistics of
// a sample bound its median with 95 % confidence: 2 · ½⁶ < 5 %.
const MinExact = 6

// MedianInterval is the median of xs with the interval between two order
// statistics (David and Nagaraja, Order Statistics, 7.1), which needs no
// assumption on the distribution. Below MinExact values, no such interval
// exists, and the one returned is as wide as the sample: use PooledInterval.
func MedianInterval(xs []float64) Interval {
	if len(xs) == 0 {
		return Interval{}
	}
	sorted := slices.Sorted(slices.Values(xs))
	if len(xs) < MinExact {
		return Interval{Median(xs), sorted[0], sorted[len(sorted)-1], len(xs)}
	}
	s := benchmath.AssumeNothing.Summary(benchmath.NewSample(sorted, &benchmath.DefaultThresholds), Confidence)
	return Interval{s.Center, s.Lo, s.Hi, len(xs)}
}

// StudentQuantile is the 97.5 % quantile of Student's t distribution: the
// number of standard errors on either side of a two-sided 95 % interval.
// Degrees of freedom below 1 count as 1.
func StudentQuantile(degrees float64) float64 {
	degrees = math.Max(1, degrees)
	if degrees > 1000 {
		return normalQuantile
	}
	return moremath.InvCDF(moremath.TDist{V: degrees})(1 - (1-Confidence)/2)
}

// normalQuantile is the 97.5 % quantile of the standard normal distribution.
const normalQuantile = 1.959963984540054

// PooledDeviation is the standard deviation within groups that share one, and
// its degrees of freedom: what a cell with one or two values borrows from all
// others. Zero degrees where no group has two values.
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

// PooledInterval is the mean of xs with Student's interval from a deviation
// that was pooled over many groups.
func PooledInterval(xs []float64, deviation, degrees float64) Interval {
	if len(xs) == 0 {
		return Interval{}
	}
	mean := Mean(xs)
	arm := StudentQuantile(degrees) * deviation / math.Sqrt(float64(len(xs)))
	return Interval{mean, mean - arm, mean + arm, len(xs)}
}

// Bootstrap is the percentile interval of a statistic under two-level
// resampling: first whole blocks, then values inside each of them, because
// values of one block (one connection) are correlated (Kalibera and Jones,
// ISMM 2013; Efron and Tibshirani 1993). With fewer than two blocks only the
// inner level is drawn. Empty blocks are ignored. Deterministic for a seed.
func Bootstrap(blocks [][]float64, statistic func([]float64) float64, draws int, seed uint64) Interval {
	blocks = slices.DeleteFunc(slices.Clone(blocks), func(b []float64) bool { return len(b) == 0 })
	if len(blocks) == 0 {
		return Interval{}
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(blocks))))
	values := make([]float64, draws)
	var sample []float64
	for d := range values {
		sample = sample[:0]
		for range blocks {
			block := blocks[random.IntN(len(blocks))]
			for range block {
				sample = append(sample, block[random.IntN(len(block))])
			}
		}
		values[d] = statistic(sample)
	}
	centre := statistic(slices.Concat(blocks...))
	tail := (1 - Confidence) / 2
	return Interval{
		Value: centre,
		Lo:    math.Min(centre, Quantile(values, tail)),
		Hi:    math.Max(centre, Quantile(values, 1-tail)),
		N:     len(blocks),
	}
}
