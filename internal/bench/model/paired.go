package model

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// A connection has its own cost for as long as it lives: how the scheduler placed its processes,
// where its buffers lie. As a standard deviation of the logarithm it was 1 to 2.5 % between
// connections of one cell (the worst of that counts); that figure counts as ownDegrees degrees of
// freedom next to the run's own.
const (
	connectionSpread  = 0.025
	connectionDegrees = 20
)

// trimmed is the share of a connection's ratios that is left out at either end: other work during
// one slice of a pair does not cancel.
const trimmed = 0.2

// pairs holds the slices of one direction, each relative to those of the reference.
type pairs struct {
	cell      alg.Suite // of the reference
	reference []reading
	cells     map[int]alg.Suite             // of other connections, by their trials
	logs      [quantities]map[int][]float64 // of their slices: cost per byte relative to the reference right before and right after
}

// Paired analyzes the slices of one direction where a reference connection took its turn before and
// after each other one (a paired comparison: a slowdown of the path or a machine that lasts longer
// than three slices cancels in their ratio). Figures are those of the reference times a cell's
// ratio; the reference's own is exact by definition, so that ratios to it have their own errors and
// no other.
func Paired(direction record.Direction, cells []alg.Suite, trials map[int]record.Trial, batches []record.Slices) *Analysis {
	a := &Analysis{Direction: direction, Cells: slices.Clone(cells)}
	p := pairsOf(direction, trials, batches)
	a.sort()
	a.Client, a.Server = p.series(a.Cells, client, 1), p.series(a.Cells, server, 1)
	a.Wall = p.series(a.Cells, wall, p.busy()) // the cost of a connection shows in its speed as far as a CPU limits that
	a.bothSides()
	return a
}

// WallOf returns the wall time of a cell, if it is known.
func (a *Analysis) WallOf(cell alg.Suite) (e stats.Estimate) {
	if i := slices.Index(a.Cells, cell); i >= 0 {
		e = a.Wall.Figures[i].Estimate
	}
	return e
}

// pairsOf relates the slices of one direction, sitting by sitting: each to those of the reference
// right before and right after it.
func pairsOf(d record.Direction, trials map[int]record.Trial, batches []record.Slices) *pairs {
	p := &pairs{cells: map[int]alg.Suite{}, logs: [quantities]map[int][]float64{{}, {}, {}}}
	sitting := 0
	var before *reading         // of the reference; nil: none yet in this sitting
	var between []*record.Slice // since then
	for _, b := range batches {
		if b.Sitting != sitting {
			sitting, before = b.Sitting, nil
		}
		for i := range b.Slices {
			s := &b.Slices[i]
			t := trials[s.Trial]
			switch {
			case t.Workload != record.Sitting || t.Direction != d || s.Bytes <= 0:
			case t.Role != record.RoleReference:
				between = append(between, s)
			default:
				after := readingOf(*s, 0)
				if before != nil && len(between) == 1 {
					p.add(trials[between[0].Trial], *before, readingOf(*between[0], 0), after)
				}
				p.cell, p.reference = cmp.Or(p.cell, t.Cell().Suite), append(p.reference, after)
				before, between = &after, between[:0]
			}
		}
	}
	return p
}

// add relates a slice to those of the reference right before and right after it, in every quantity
// that all three have.
func (p *pairs) add(t record.Trial, before, own, after reading) {
	p.cells[t.ID] = t.Cell().Suite
	for q := range quantities {
		if before.ns[q] > 0 && own.ns[q] > 0 && after.ns[q] > 0 {
			usual := (before.ns[q]/before.bytes + after.ns[q]/after.bytes) / 2
			p.logs[q][t.ID] = append(p.logs[q][t.ID], math.Log(own.ns[q]/own.bytes/usual))
		}
	}
}

// busy returns the share of the reference's time in which the busier side needed its CPU.
func (p *pairs) busy() float64 {
	var parts []float64
	for _, r := range p.reference {
		if r.ns[wall] > 0 {
			parts = append(parts, math.Max(r.ns[client], r.ns[server])/r.ns[wall])
		}
	}
	return math.Min(1, stats.Median(parts))
}

// series returns the figures of one quantity.
func (p *pairs) series(cells []alg.Suite, q quantity, share float64) Series {
	s := Series{Figures: make([]Effect, len(cells))}
	var logs []float64 // of what the reference took per byte
	for _, r := range p.reference {
		if r.ns[q] > 0 {
			logs = append(logs, math.Log(r.ns[q]/r.bytes))
		}
	}
	if len(logs) == 0 {
		return s
	}
	level := stats.Median(logs)
	s.Level = stats.Scale(logs, level) / math.Sqrt(float64(len(logs)))
	ratios := p.ratios(q, share)
	ratios[p.cell] = stats.Estimate{N: 1}
	degrees := math.Inf(1)
	for i, cell := range cells {
		if e := ratios[cell]; e.Known() {
			if e.Err > 0 {
				degrees = min(degrees, e.DF)
			}
			e.Log += level
			s.Figures[i] = Effect{Estimate: e, Basis: e.N, Shared: 1}
		}
	}
	if !math.IsInf(degrees, 1) {
		s.Degrees = degrees
		for i := range s.Figures {
			s.Figures[i].DF = degrees
		}
	}
	return s
}

// ratios estimates each cell's ratio to the reference: the mean of its connections' trimmed means.
// Its error has two parts (a random-effects model): that of its pairs, whose spread all cells
// share, since five pairs say little about it, and that of being one connection of many, which the
// reference has, too.
func (p *pairs) ratios(q quantity, share float64) map[alg.Suite]stats.Estimate {
	means := map[alg.Suite][]float64{} // of a cell's connections
	inverse := map[alg.Suite]float64{} // of a cell: sum of 1 / pairs
	var influences [][]float64
	for _, id := range slices.Sorted(maps.Keys(p.logs[q])) {
		xs, cell := p.logs[q][id], p.cells[id]
		cut := math.Floor(trimmed*float64(len(xs))) / float64(len(xs)) // the same number of values at either end
		t := stats.Trim(slices.Sorted(slices.Values(xs)), cut, 1-cut)
		means[cell] = append(means[cell], t.Mean)
		inverse[cell] += 1 / float64(len(xs))
		influences = append(influences, t.Influences(xs))
	}
	within, degrees := stats.PooledDeviation(influences)
	out := map[alg.Suite]stats.Estimate{}
	if degrees == 0 {
		return out
	}
	between, known := stats.PooledDeviation(slices.Collect(maps.Values(means)))
	between, known = stats.Shrink(between, known, connectionSpread, connectionDegrees)
	for cell, xs := range means {
		n := float64(len(xs))
		e := stats.Estimate{Log: stats.Mean(xs), Err: within * math.Sqrt(inverse[cell]) / n, DF: degrees, N: len(xs)}
		out[cell] = e.WithError(share*between*math.Sqrt(2/n), known) // its own and the reference's
	}
	return out
}
