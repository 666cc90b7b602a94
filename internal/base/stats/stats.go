// Package stats is the arithmetic behind the rankings: robust summaries, intervals, tests of
// difference, trends and groups, on plain numbers. It knows nothing of SSH. No function returns NaN
// or an infinity for finite input unless its comment says so, and none changes its arguments.
package stats

import (
	"math"
	"slices"
)

// Confidence is the level of every interval that sshpace prints.
const Confidence = 0.95

// madScale makes the median absolute deviation of a normal distribution estimate its standard
// deviation: 1 / Φ⁻¹(3/4).
const madScale = 1.4826022185056018

// Mean of xs; 0 for none.
func Mean(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sum := 0.0
	for _, x := range xs {
		sum += x
	}
	return sum / float64(len(xs))
}

// Variance of xs with the n-1 denominator; 0 for fewer than two values.
func Variance(xs []float64) float64 {
	if len(xs) < 2 {
		return 0
	}
	mean, sum := Mean(xs), 0.0
	for _, x := range xs {
		sum += (x - mean) * (x - mean)
	}
	return sum / float64(len(xs)-1)
}

// Median of xs, the mean of the two middle values where their number is even; 0 for none.
func Median(xs []float64) float64 { return Quantile(xs, 0.5) }

// Quantile of xs at 0 <= q <= 1, linear between order statistics (type 7 of Hyndman and Fan, The
// American Statistician 50, 1996); 0 for none.
func Quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	xs = slices.Clone(xs)
	at := q * float64(len(xs)-1)
	place := int(at)
	below := find(xs, place)
	if place == len(xs)-1 {
		return below
	}
	return between(below, slices.Min(xs[place+1:]), at)
}

func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	place := int(at)
	return between(sorted[place], sorted[min(place+1, len(sorted)-1)], at)
}

// between interpolates at a fractional place, from the values below and above it.
func between(below, above, place float64) float64 {
	return below + (place-math.Floor(place))*(above-below)
}

// find returns the value that has the given place in xs when they are sorted. It moves no larger
// value before it and no smaller value after it: FIND of Hoare (Communications of the ACM 4, 1961),
// in a third of the time of sorting.
func find(xs []float64, place int) float64 {
	for low, high := 0, len(xs)-1; low < high; {
		pivot, i, j := xs[place], low, high
		for i <= j {
			for xs[i] < pivot {
				i++
			}
			for pivot < xs[j] {
				j--
			}
			if i <= j {
				xs[i], xs[j] = xs[j], xs[i]
				i, j = i+1, j-1
			}
		}
		if j < place {
			low = i
		}
		if place < i {
			high = j
		}
	}
	return xs[place]
}

// Scale returns a robust standard deviation of xs around center: the median absolute deviation,
// scaled for the normal distribution; 0 for none.
func Scale(xs []float64, center float64) float64 {
	deviations := make([]float64, len(xs))
	for i, x := range xs {
		deviations[i] = math.Abs(x - center)
	}
	return madScale * Median(deviations)
}

// RMS returns the root of the mean square of xs; 0 for none.
func RMS(xs []float64) float64 {
	squares := make([]float64, len(xs))
	for i, x := range xs {
		squares[i] = x * x
	}
	return math.Sqrt(Mean(squares))
}
