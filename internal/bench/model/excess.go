package model

import (
	"math"
	"slices"

	"sshpace/internal/base/stats"
)

// Excess is the cost of a slice besides its bytes, for every quantity: waking up, filling buffers.
type Excess [quantities]float64

const (
	// lengthFactor is the least ratio of the two alternating lengths of a connection's slices, so
	// that the excess shows.
	lengthFactor = 1.25
	fewSlices    = 4 // fewer give no estimate of the cost
)

// excessOf returns the intercept of ns = excess + bytes·cost, by the brief and the usual slices of
// each connection: the median of all, as in Theil's regression (1950). It is zero where all slices
// have one length.
func excessOf(connections []*Transfer) Excess {
	var out Excess
	for q := range quantities {
		var all []float64
		for _, c := range connections {
			if ns, ok := c.excess(q); ok {
				all = append(all, ns)
			}
		}
		out[q] = math.Max(0, stats.Median(all))
	}
	return out
}

// excess returns how much more CPU time, in ns, a slice of this connection takes than its bytes
// alone explain.
func (t *Transfer) excess(q quantity) (ns float64, ok bool) {
	var sizes []float64
	for _, r := range t.readings {
		if r.ns[q] <= 0 {
			return 0, false
		}
		if !r.long {
			sizes = append(sizes, r.bytes)
		}
	}
	if len(sizes) == 0 || slices.Max(sizes) <= lengthFactor*slices.Min(sizes) {
		return 0, false
	}
	border := math.Sqrt(slices.Min(sizes) * slices.Max(sizes))
	var costs, inverses [2][]float64 // of brief slices, and of all others
	for _, r := range t.readings {
		k := one(r.bytes > border)
		costs[k] = append(costs[k], r.ns[q]/r.bytes)
		inverses[k] = append(inverses[k], 1/r.bytes)
	}
	if len(costs[0]) < fewSlices {
		return 0, false
	}
	var at [2]float64
	for k := range at {
		at[k] = baseline(slices.Sorted(slices.Values(costs[k])))
	}
	return (at[0] - at[1]) / (stats.Mean(inverses[0]) - stats.Mean(inverses[1])), true
}

// without returns a quantity without the excess. A slice that would be mostly excess was cut short:
// it says little.
func (e Excess) without(r reading, q quantity) float64 {
	return math.Max(r.ns[q]-e[q], r.ns[q]/4)
}
