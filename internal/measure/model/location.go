package model

import (
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

// location is the trimmed mean of sorted values.
func location(sorted []float64) float64 {
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

// free takes the level that all connections share in a window of time out of
// their slices: a connection that had most of its turns while the machine was slow
// would look costly.
func free(samples []sample, windows int) {
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
			if len(xs) >= windowSlices/4 {
				slices.Sort(xs)
				levels[w] = location(xs) - all
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
