package model

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/stats"
)

// The location of a connection's slices is their mean between the first two of these
// quantiles: neighbours on the machine only ever make a slice slower, and heavy tails are
// what most of them leave. CPU times are compared by the mean of those below the third, when
// neighbours were calm: they slow some ciphers more than others, now less and then more.
const (
	lowQuantile  = 0.05
	highQuantile = 0.85
	calmQuantile = 0.4
)

// location is the trimmed mean of sorted values; 0 for none.
func location(sorted []float64) float64 { return stats.Trim(sorted, lowQuantile, highQuantile).Mean }

// sample is one quantity of one connection: the logarithms of its slices, and
// in which window of time each was.
type sample struct {
	logs    []float64
	windows []int
	stats.Trimmed
	err float64 // standard error of the trimmed mean if slices were independent
}

// locate finds the mean between two quantiles and its error.
func (s *sample) locate(low, high float64) {
	if len(s.logs) > 0 {
		s.Trimmed = stats.Trim(slices.Sorted(slices.Values(s.logs)), low, high)
		s.err = math.Sqrt(stats.Variance(s.Influences(s.logs)) / float64(len(s.logs)))
	}
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
				residuals[s.windows[i]] = append(residuals[s.windows[i]], x-s.Mean)
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
			s.locate(lowQuantile, highQuantile)
		}
	}
}

const (
	fewSlices      = 4   // do not tell how much slices vary
	usualWorth     = 10  // slices of a connection, that the usual deviation counts for
	usualDeviation = 0.1 // of a slice, in logs, where no connection has more
)

// pool moderates the errors of locations: slices of all connections vary about
// alike, and few of one tell little about how much (Smyth, Statistical Applications
// in Genetics and Molecular Biology 3, 2004).
func pool(samples []sample) {
	var deviations []float64
	for _, s := range samples {
		if n := len(s.logs); n >= fewSlices {
			deviations = append(deviations, s.err*math.Sqrt(float64(n)))
		}
	}
	usual := usualDeviation
	if len(deviations) > 0 {
		usual = stats.Median(deviations)
	}
	for i := range samples {
		if n := float64(len(samples[i].logs)); n > 0 {
			own := samples[i].err * samples[i].err * n
			samples[i].err = math.Sqrt((own*n + usual*usual*usualWorth) / (n + usualWorth) / n)
		}
	}
}

const (
	minInflation = 1.0
	maxInflation = 16.0
	batches      = 8 // of windows in a row, whose means are nearly independent
)

// course is how some connections did over time, relative to all others: sums of
// influences and of their variances over batches of time (batch means: Law and
// Kelton, Simulation Modeling and Analysis, 9.5).
type course struct{ sums, numbers, variances []float64 }

func newCourse(count int) course {
	return course{make([]float64, count), make([]float64, count), make([]float64, count)}
}

// courses of all samples. Each sums to zero, and so do all together in every
// batch. ok is false where time is too short.
func courses(samples []sample, windows int) (out []course, ok bool) {
	count := min(batches, windows)
	if count < 2 {
		return nil, false
	}
	common := newCourse(count)
	for _, s := range samples {
		c := newCourse(count)
		mean := 0.0
		for _, x := range s.logs {
			mean += s.Influence(x) / float64(len(s.logs))
		}
		variance := s.err * s.err * float64(len(s.logs)) // of one influence
		for k, x := range s.logs {
			b := s.windows[k] * count / windows
			c.sums[b] += s.Influence(x) - mean
			c.numbers[b]++
			c.variances[b] += variance
		}
		if variance > 0 {
			for b := range count {
				common.sums[b] += c.sums[b] / variance
				common.numbers[b] += c.numbers[b] / variance
			}
		}
		out = append(out, c)
	}
	for _, c := range out {
		for b := range count {
			if c.numbers[b] > 0 && common.numbers[b] > 0 {
				c.sums[b] -= c.numbers[b] * common.sums[b] / common.numbers[b]
			}
		}
	}
	return out, true
}

// inflation is the factor by which the variance of locations exceeds that of
// independent slices: what disturbs one slice disturbs its neighbours, too. It is
// pooled over all connections.
func inflation(all []course) float64 {
	squares, degrees := 0.0, 0.0
	for _, c := range all {
		for b, variance := range c.variances {
			if variance > 0 {
				squares += c.sums[b] * c.sums[b] / variance
				degrees++
			}
		}
		degrees--
	}
	if degrees -= batches - 1; degrees < batches {
		return minInflation
	}
	return math.Max(minInflation, math.Min(maxInflation, squares/degrees))
}

// apart is the variance that connections of one group have in common over a run,
// beyond that of their slices: neighbours that use the same execution units as a
// cipher slow it more than others, now more and then less. group numbers each
// course's group.
func apart(all []course, group []int, inflation float64) float64 {
	groups := map[int]course{}
	for i, c := range all {
		sum, seen := groups[group[i]]
		if !seen {
			sum = newCourse(len(c.sums))
			groups[group[i]] = sum
		}
		for b := range c.sums {
			sum.sums[b] += c.sums[b]
			sum.numbers[b] += c.numbers[b]
			sum.variances[b] += c.variances[b]
		}
	}
	if len(groups) < 3 {
		return 0
	}
	excess, weights, count := 0.0, 0.0, 1.0
	free := 1 - 1/float64(len(groups)) // what taking out the common course left
	for _, g := range slices.Sorted(maps.Keys(groups)) {
		c := groups[g]
		count = float64(len(c.sums))
		for b, n := range c.numbers {
			if n > 0 && c.variances[b] > 0 {
				mean, variance := c.sums[b]/n, inflation*c.variances[b]/(n*n)
				excess += (mean*mean - variance*free*(1-1/count)) / variance
				weights += free * (1 - 1/count) / variance
			}
		}
	}
	if weights == 0 {
		return 0
	}
	return math.Max(0, excess/weights) / count
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
