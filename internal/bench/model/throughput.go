package model

import (
	"math"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Throughput follows from slices that are long enough for both sides to work side by side.

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
// no such parts at all.
func fewParts(connections []*connection) []bool {
	parts := map[record.Cell]int{}
	for _, c := range connections {
		parts[c.trial.Cell()] += len(c.parts)
	}
	out := make([]bool, len(connections))
	for i, c := range connections {
		out[i] = c.timed && parts[c.trial.Cell()] < ownParts
	}
	return out
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
			for _, r := range connections[i].parts {
				if r.ns[client] > 0 {
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
