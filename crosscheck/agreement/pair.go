package main

import (
	"math"

	"sshpace/internal/base/stats"
	relate "sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// run is one ranking, by one quantity.
type run struct {
	name    string
	holdout [2]float64 // median and 95th percentile of the errors of predicted client cost, in percent
	floor   float64    // noise floor of the quantity, in percent
	slowed  float64    // by other guests, in percent
	order   []key
	cells   map[key]cell
	ranking *rank.Ranking
}

type key struct {
	cipher, mac string
	direction   record.Direction
}

// cell is a figure as a logarithm: more is worse.
type cell struct {
	log, arm float64
	rank     int
	group    string
}

// quantity is what runs are compared by.
type quantity struct {
	name string
	by   rank.By // what orders the cells, and what letters are of
	of   func(rank.Cell) stats.Estimate
}

var quantities = []quantity{
	{"CPU time of both sides", rank.Cost, func(c rank.Cell) stats.Estimate { return c.Total.Estimate }},
	{"CPU time of the client", rank.Cost, func(c rank.Cell) stats.Estimate { return c.Client.Estimate }},
	{"throughput", rank.Throughput, func(c rank.Cell) stats.Estimate { return c.Throughput.Inverse() }},
}

func runOf(name string, r *rank.Ranking, quantity quantity) run {
	out := run{name: name, cells: map[key]cell{}, slowed: r.Slowed.Percent(), ranking: r}
	out.holdout = [2]float64{r.Model.HoldoutError, r.Model.HoldoutP95}
	out.floor = r.Noise.Throughput
	if quantity.by == rank.Cost {
		out.floor = r.Noise.Cost
	}
	for _, c := range r.Bulk {
		q := quantity.of(c)
		k := key{c.Suite.Cipher, c.Suite.MAC, c.Direction}
		out.order = append(out.order, k)
		out.cells[k] = cell{q.Log, q.Repeated().Arm(), c.Rank, c.Group}
	}
	return out
}

// pair is what two runs say about the same cells, without what the slices of both show of other
// guests, as sshpace compare takes it.
type pair struct {
	shift, measured float64 // percent; measured is with it
	median, p95     float64 // percent
	tau             float64
	covered, wider  float64 // percent, by the intervals of both runs, and of the one whose are wider: the other cannot know
	opposite        int
}

func compare(a, b run) pair {
	var xs, ys, ratios, measured []float64
	var common []key
	guests := relate.Neighbors(a.ranking, b.ranking)
	for _, k := range a.order {
		if other, ok := b.cells[k]; ok {
			common = append(common, k)
			xs, ys = append(xs, a.cells[k].log), append(ys, other.log)
			ratios = append(ratios, other.log-a.cells[k].log+guests.Log)
			measured = append(measured, other.log-a.cells[k].log)
		}
	}
	shift := stats.Median(ratios)
	off := make([]float64, len(common))
	var held, arms [2]float64 // by run
	for i, k := range common {
		off[i] = math.Abs(ratios[i] - shift)
		for of, arm := range []float64{a.cells[k].arm, b.cells[k].arm} {
			if arms[of] += arm; off[i] <= math.Hypot(arm, 1.96*guests.Err) {
				held[of] += 100 / float64(len(common))
			}
		}
	}
	wider := held[0]
	if arms[1] > arms[0] {
		wider = held[1]
	}
	return pair{
		shift: 100 * shift, measured: 100 * stats.Median(measured),
		median: 100 * stats.Median(off), p95: 100 * stats.Quantile(off, 0.95),
		tau: stats.KendallTau(xs, ys), covered: (held[0] + held[1]) / 2, wider: wider, opposite: opposite(a, b, common),
	}
}

// opposite counts pairs of cells that both runs tell apart, in opposite order.
func opposite(a, b run, common []key) int {
	n := 0
	for i, k := range common {
		for _, l := range common[:i] {
			differ := a.cells[k].group != a.cells[l].group && b.cells[k].group != b.cells[l].group && k.direction == l.direction
			if differ && (a.cells[k].rank < a.cells[l].rank) != (b.cells[k].rank < b.cells[l].rank) {
				n++
			}
		}
	}
	return n
}
