package model

import (
	"math"
	"slices"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Throughput follows from slices that are long enough for both sides to work side by side.

// timeBySteady leaves the steady readings alone where there are any.
func timeBySteady(connections []*connection) {
	timed, steady := false, false
	for _, c := range connections {
		timed = timed || len(c.long) > 0
		steady = steady || slices.ContainsFunc(c.long, isSteady)
	}
	for _, c := range connections {
		c.timed = timed
		if steady {
			c.long = slices.DeleteFunc(c.long, func(r reading) bool { return !isSteady(r) })
		}
	}
}

func isSteady(r reading) bool { return r.steady }

const (
	ownParts  = 6    // steady parts of a cell that show themselves how slow the slow ones are
	usualTail = 0.75 // quantile of all others beyond which a part is slow by bad luck
)

// limitTails has steady parts of slices count no more than most others, where a cell has
// few of them: half of all parts take as long as their costlier side needs of a CPU, a
// quarter longer by 5 to 30 %, because the scheduler put both sides on one CPU for some
// of the time, whatever the cipher. How much that is on average is in all figures (prolong).
func limitTails(connections []*connection, samples []sample) {
	var all []float64
	few := fewParts(connections)
	for i, s := range samples {
		if few[i] {
			all = append(all, s.logs...)
		}
	}
	if len(all) < ownParts {
		return
	}
	limit := stats.Quantile(all, usualTail)
	for i, s := range samples {
		if few[i] {
			for k, x := range s.logs {
				s.logs[k] = math.Min(x, limit)
			}
		}
	}
}

// fewParts tells connections of cells that have few steady parts; none where there are
// no steady ones at all.
func fewParts(connections []*connection) []bool {
	parts, any := map[record.Cell]int{}, false
	for _, c := range connections {
		if slices.ContainsFunc(c.long, isSteady) {
			parts[c.trial.Cell()] += len(c.long)
			any = true
		}
	}
	out := make([]bool, len(connections))
	for i, c := range connections {
		out[i] = any && parts[c.trial.Cell()] < ownParts
	}
	return out
}

// fill is what the short slices of a connection take, relative to the CPU time of the
// costlier side. They are little more than what every slice begins and ends with: one side
// works while the other has nothing yet, or nothing any more.
type fill struct{ ratio, bytes float64 }

// fill of a connection. Its slices take both sides one after the other at most, and idle,
// which is on the way; what the wall shows beyond that is how late we looked.
func (e *Excess) fill(c *connection, idle float64) fill {
	var logs, sizes []float64
	least := 0.0 // bytes: only the larger of two sizes, which is known to be usual
	for _, r := range c.readings {
		if !r.long {
			least = max(least, r.bytes/lengthFactor)
		}
	}
	for _, r := range c.readings {
		if !r.long && r.bytes > least && r.ns[wall] > 0 && r.ns[client] > 0 {
			took := e.free(r, wall)
			if r.ns[server] > 0 {
				took = math.Min(took, e.free(r, client)+e.free(r, server)+idle)
			}
			logs, sizes = append(logs, math.Log(took/e.costlier(r))), append(sizes, r.bytes)
		}
	}
	if len(logs) < fewSlices {
		return fill{}
	}
	return fill{math.Exp(stats.Median(logs)), stats.Median(sizes)}
}

// idle is how long neither side works in a short slice, in ns: what is the same in the
// connections that we looked at in time.
func (e *Excess) idle(connections []*connection) float64 {
	var all []float64
	for _, c := range connections {
		var idle []float64
		for _, r := range c.readings {
			if !r.long && r.ns[wall] > 0 && r.ns[client] > 0 && r.ns[server] > 0 {
				idle = append(idle, e.free(r, wall)-e.free(r, client)-e.free(r, server))
			}
		}
		if len(idle) >= fewSlices {
			all = append(all, stats.Median(idle))
		}
	}
	return math.Max(0, stats.Quantile(all, inTime))
}

// leastRest is how many times as long a slice is at least to have a rest.
const leastRest = 1.5

// inTime is the part of the connections that we look at when they are done.
const inTime = 0.1

// rest is the ratio of wall and CPU time of what a slice of so many bytes has more than
// a short one: that of a transfer without beginning or end. Each side is one thread, and
// takes no less on the wall than of a CPU.
func (f fill) rest(ratio, bytes float64) float64 {
	if bytes < leastRest*f.bytes || f.bytes == 0 {
		return ratio
	}
	return math.Max((ratio*bytes-f.ratio*f.bytes)/(bytes-f.bytes), 1)
}

// relate turns wall times relative to CPU times into wall times: the costs of all
// slices are known better than those of the few long ones.
func relate(estimates [quantities][]stats.Estimate) {
	for i, c := range estimates[client] {
		w := &estimates[wall][i]
		if c.N == 0 || w.N == 0 {
			continue
		}
		if s := estimates[server][i]; s.N > 0 && s.Log > c.Log {
			c = s
		}
		w.Log, w.Err = w.Log+c.Log, math.Hypot(w.Err, c.Err)
	}
}

// prolong has wall times, still relative to CPU times, be those of long transfers, which take
// longer than their steady parts usually do: now and then the scheduler puts both sides on
// one CPU for some of its turns, which is in every long transfer, and in some of the
// parts. Cells with many parts show how often themselves, all others together.
func prolong(connections []*connection, walls []stats.Estimate) {
	few := fewParts(connections)
	groups := map[record.Cell][]int{} // connections; those of all cells with few parts under none
	for i, c := range connections {
		var cell record.Cell
		if !few[i] {
			cell = c.trial.Cell()
		}
		groups[cell] = append(groups[cell], i)
	}
	for _, group := range groups {
		var ratios, logs []float64
		for _, i := range group {
			for _, r := range connections[i].long {
				if r.steady && r.ns[client] > 0 {
					ratios = append(ratios, r.ns[wall]/math.Max(r.ns[client], r.ns[server]))
					logs = append(logs, walls[i].Log)
				}
			}
		}
		if len(ratios) < fewSlices {
			continue
		}
		longest := stopped * stats.Median(ratios)
		for k, ratio := range ratios {
			ratios[k] = math.Min(ratio, longest)
		}
		for _, i := range group {
			walls[i].Log += math.Log(stats.Mean(ratios)) - stats.Mean(logs)
		}
	}
}

// stopped is from what multiple of the usual time on a steady part was not at work,
// but stopped: by a user, or by a machine that went to sleep.
const stopped = 3
