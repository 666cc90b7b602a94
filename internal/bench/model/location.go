package model

import (
	"math"
	"slices"

	"sshpace/internal/base/stats"
)

const (
	// baselinePart is the part of a connection's slices by which cells are compared, those that
	// cost least. Other guests of the machine only ever make a slice slower, some ciphers three
	// times as much as others, and not evenly over time.
	baselinePart = 0.25
	// The usual cost of slices lies between these quantiles.
	usualFrom, usualTo = 0.05, 0.85
	// blocks of time in a run, which disturb each other little.
	blocks = 20
)

// baseline is the mean of the lowest of sorted values: a trimmed mean.
func baseline(sorted []float64) float64 { return stats.Trim(sorted, 0, baselinePart).Mean }

// meanOf returns the arithmetic mean of the values of logarithms.
func meanOf(logs []float64) float64 {
	sum := 0.0
	for _, log := range logs {
		sum += math.Exp(log)
	}
	return sum / float64(len(logs))
}

// block is a part of a run: how much the slices of a connection moved its location there, and their
// number.
type block struct{ moved, slices float64 }

// located is one quantity of one connection.
type located struct {
	stats.Estimate
	logs   []float64 // of its slices
	mean   float64   // of all of them, with the effect of other guests: the logarithm of their arithmetic mean
	steady []float64 // of the steady parts of its long slices
	moved  float64   // standard error of the correction for long transfers
	blocks []block
}

// locate finds the cost of each connection per byte, as logarithms of ns: its baseline, without the
// level of the machine in each window of time, at the usual level of all. N is 0 where some slice
// has no figure.
func locate(connections []*Transfer, q quantity, excess Excess) {
	windows := 0
	var readings []stats.Reading
	for i, c := range connections {
		unknown := slices.ContainsFunc(c.readings, func(r reading) bool { return r.ns[q] <= 0 })
		for _, r := range c.readings {
			if windows = max(windows, r.window+1); !unknown {
				readings = append(readings, stats.Reading{Row: r.window, Col: i, Value: math.Log(excess.without(r, q) / r.bytes)})
			}
		}
	}
	low := stats.QuantileOf(baselinePart / 2)
	levels := stats.TwoWay(readings, low, low).Rows
	for _, r := range readings {
		l := &connections[r.Col].of[q]
		l.logs = append(l.logs, r.Value-levels[r.Row])
	}
	var above []float64
	for _, c := range connections {
		l := &c.of[q]
		if len(l.logs) == 0 {
			continue
		}
		l.mean = math.Log(meanOf(l.logs))
		sorted := slices.Sorted(slices.Values(l.logs))
		lowest := stats.Trim(sorted, 0, baselinePart)
		l.Estimate = stats.Estimate{Log: lowest.Mean, N: len(l.logs)}
		above = append(above, stats.Trim(sorted, usualFrom, usualTo).Mean-lowest.Mean)
		l.blocks = blocksOf(c.readings, lowest.Influences(l.logs), windows)
		for _, r := range c.steady {
			if r.ns[q] > 0 && r.window < len(levels) {
				l.steady = append(l.steady, math.Log(r.ns[q]/r.bytes)-levels[r.window])
			}
		}
	}
	level := stats.Median(above)
	for _, c := range connections {
		if c.of[q].N > 0 {
			c.of[q].Log += level
		}
	}
}

// blocksOf sums influences by blocks of time.
func blocksOf(readings []reading, influences []float64, windows int) []block {
	out, mean := make([]block, min(blocks, windows)), stats.Mean(influences)
	for k, r := range readings {
		b := &out[r.window*len(out)/windows]
		b.moved += influences[k] - mean
		b.slices++
	}
	return out
}

// stopped is the multiple of the usual time from which on a steady part was not at work, but
// stopped: by a user, or by a machine that went to sleep.
const stopped = 3

// ratio returns the wall time of a long transfer relative to the CPU time of the costlier side, or
// per byte where no costs are known: a slowdown of a slice slows both. It is the mean of the
// ratios, not the median: now and then the scheduler puts both sides on one CPU, as it does in long
// transfers. If some slices of the run have steady parts, only these count.
func (t *Transfer) ratio(steady bool, excess Excess) stats.Estimate {
	readings := t.readings
	if steady {
		readings, excess = t.steady, Excess{}
	}
	var ratios []float64
	for _, r := range readings {
		unit := r.bytes
		if t.of[client].N > 0 {
			unit = math.Max(excess.without(r, client), excess.without(r, server))
		}
		if unit > 0 {
			ratios = append(ratios, excess.without(r, wall)/unit)
		}
	}
	if len(ratios) == 0 {
		return stats.Estimate{}
	}
	limit := stopped * stats.Median(ratios)
	for k := range ratios {
		ratios[k] = math.Min(ratios[k], limit)
	}
	return stats.Estimate{Log: math.Log(stats.Mean(ratios)), N: len(ratios)}
}

// The work of other guests shows in how far slices lie above the best ones.
const (
	bestPart     = 0.1 // of slices, whose mean represents the machine's best moments
	enoughSlices = 160 // to find these
)

// slowdown returns by how much connections cost more than at their best moments, on average, as a
// logarithm; known is false where there are too few slices.
func slowdown(connections []*Transfer) (cost float64, known bool) {
	var above []float64
	n := 0
	for _, c := range connections {
		for _, l := range []located{c.of[client], c.of[server]} {
			if n += len(l.logs); l.N > 0 {
				above = append(above, l.Log-stats.Trim(slices.Sorted(slices.Values(l.logs)), 0, bestPart).Mean)
			}
		}
	}
	if n < enoughSlices {
		return 0, false
	}
	return stats.Mean(above), true
}
