package model

import (
	"cmp"
	"math"
	"slices"

	"sshpace/internal/base/stats"
)

// The location of a connection's slices is their mean between these quantiles:
// neighbours on the machine only ever make a slice slower, and heavy tails are what
// most of them leave.
const (
	lowQuantile  = 0.05
	highQuantile = 0.75
)

// cut is the range of n sorted values that the location averages.
func cut(n int) (from, to int) {
	from = int(lowQuantile * float64(n))
	return from, max(from+1, int(highQuantile*float64(n)))
}

// location is the trimmed mean of sorted values; 0 for none.
func location(sorted []float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	from, to := cut(len(sorted))
	return stats.Mean(sorted[from:to])
}

// sample is one quantity of one connection: the logarithms of its slices, and
// in which window of time each was.
type sample struct {
	logs    []float64
	windows []int
	centre  float64 // location
	lo, hi  float64 // values beyond these have no more influence
	err     float64 // standard error of the location if slices were independent
}

// locate finds the location and its error, which is that of the winsorised
// values (Tukey and McLaughlin, Sankhya A 25, 1963).
func (s *sample) locate() {
	n := len(s.logs)
	if n == 0 {
		return
	}
	sorted := slices.Sorted(slices.Values(s.logs))
	from, to := cut(n)
	s.centre, s.lo, s.hi = stats.Mean(sorted[from:to]), sorted[from], sorted[to-1]
	influences := make([]float64, n)
	for i, x := range s.logs {
		influences[i] = s.influence(x)
	}
	s.err = math.Sqrt(stats.Variance(influences) / float64(n))
}

// influence is how much one slice moves the location, times their number.
func (s *sample) influence(x float64) float64 {
	return math.Max(s.lo, math.Min(s.hi, x)) / (highQuantile - lowQuantile)
}

// levelPasses of locations and levels in turn; more change nothing that can be
// seen.
const levelPasses = 2

// trimmedError is about how much larger the error of the location is than that
// of a mean of normal values.
const trimmedError = 1.2

// free takes the level that all connections share in a window of time out of
// their slices: a connection that had most of its turns while the machine was slow
// would look costly. A level is believed as far as it exceeds its error (James and
// Stein 1961).
func free(samples []sample, windows int) {
	if windows < 2 {
		return
	}
	for range levelPasses {
		residuals := make([][]float64, windows)
		for _, s := range samples {
			for i, x := range s.logs {
				residuals[s.windows[i]] = append(residuals[s.windows[i]], x-s.centre)
			}
		}
		all := location(slices.Sorted(slices.Values(slices.Concat(residuals...))))
		levels := make([]float64, windows)
		for w, xs := range residuals {
			slices.Sort(xs)
			if level := location(xs) - all; len(xs) > 1 && level != 0 {
				err := stats.Scale(xs, stats.Median(xs)) * trimmedError / math.Sqrt(float64(len(xs)))
				levels[w] = level * math.Max(0, 1-err*err/(level*level))
			}
		}
		for i := range samples {
			s := &samples[i]
			for k := range s.logs {
				s.logs[k] -= levels[s.windows[k]]
			}
			s.locate()
		}
	}
}

const (
	minInflation = 1.0
	maxInflation = 16.0
	batches      = 8 // of windows in a row, whose means are nearly independent
)

// inflation is the factor by which the variance of locations exceeds that of
// independent slices: what disturbs one slice disturbs its neighbours, too. It is
// that of means over batches of time (batch means: Law and Kelton, Simulation
// Modeling and Analysis, 9.5), freed of what all connections have in common,
// pooled over all connections.
func inflation(samples []sample, windows int) float64 {
	count := min(batches, windows)
	if count < 2 {
		return minInflation
	}
	sums, numbers := make([][]float64, len(samples)), make([][]float64, len(samples))
	common, weights := make([]float64, count), make([]float64, count)
	for i, s := range samples {
		sums[i], numbers[i] = make([]float64, count), make([]float64, count)
		mean := 0.0
		for _, x := range s.logs {
			mean += s.influence(x) / float64(len(s.logs))
		}
		for k, x := range s.logs {
			b := s.windows[k] * count / windows
			sums[i][b] += s.influence(x) - mean
			numbers[i][b]++
		}
		if s.err > 0 {
			for b := range count {
				common[b] += sums[i][b] / (s.err * s.err * float64(len(s.logs)))
				weights[b] += numbers[i][b] / (s.err * s.err * float64(len(s.logs)))
			}
		}
	}
	squares, degrees := 0.0, 0.0
	for i, s := range samples {
		if s.err == 0 {
			continue
		}
		variance := s.err * s.err * float64(len(s.logs)) // of one slice's influence
		for b := range count {
			if n := numbers[i][b]; n > 0 {
				off := sums[i][b] - n*common[b]/weights[b]
				squares += off * off / n / variance
				degrees++
			}
		}
		degrees--
	}
	if degrees -= float64(count - 1); degrees < batches {
		return minInflation
	}
	return math.Max(minInflation, math.Min(maxInflation, squares/degrees))
}

// weightedMedian is the value with half of the weight on either side; 0 for
// none.
func weightedMedian(xs, weights []float64) float64 {
	order := make([]int, len(xs))
	total := 0.0
	for i := range order {
		order[i] = i
		total += weights[i]
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(xs[i], xs[j]) })
	sum := 0.0
	for _, i := range order {
		if sum += weights[i]; sum >= total/2 {
			return xs[i]
		}
	}
	return 0
}

// medianError is the standard error of a weighted median of values whose
// variances are inverse to their weights: √(π/2) times that of the mean.
func medianError(xs, weights []float64, median float64) float64 {
	var scaled []float64
	total := 0.0
	for i, x := range xs {
		scaled = append(scaled, (x-median)*math.Sqrt(weights[i]))
		total += weights[i]
	}
	return math.Sqrt(math.Pi/2/total) * stats.Scale(scaled, 0)
}
