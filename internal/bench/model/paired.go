package model

import (
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// A connection has a cost of its own for as long as it lives: how the scheduler
// placed its processes, where its buffers lie. As a standard deviation of the
// logarithm it was 1 to 2.5 % between connections of one cell (the worst of that counts); so many degrees of
// freedom is that figure worth beside what the run itself shows.
const (
	connectionSpread  = 0.025
	connectionDegrees = 20
)

// trimmed is the share of a connection's ratios that is left out at either end: what
// other work does to one slice of a pair does not cancel.
const trimmed = 0.2

// pairing is the ratios that one connection showed, as logarithms: what it takes
// per byte, over what the reference takes right before and right after it.
type pairing struct {
	cell   alg.Suite
	ratios [quantities][]float64
}

// pairs are the slices of one direction, each in relation to those of the reference.
type pairs struct {
	reference *record.Trial         // one of them
	levels    [quantities][]float64 // logarithms of what the reference took per byte
	busy      []float64             // parts of the reference's time in which the busier side needed its CPU
	of        map[int]*pairing      // by trial
}

// Paired analyses the slices of one direction where a reference connection took
// its turn before and after each other one (a paired comparison: what slows the path
// or a machine for longer than three slices cancels in their ratio). Figures are
// those of the reference times a cell's ratio; the reference's own is exact by
// definition, so that ratios to it have their own errors and no other.
func Paired(direction record.Direction, cells []alg.Suite, trials map[int]record.Trial, batches []record.Slices) *Analysis {
	a := &Analysis{Direction: direction, Cells: slices.Clone(cells)}
	p := &pairs{of: map[int]*pairing{}}
	for _, turns := range turnsOf(direction, trials, batches) {
		p.add(turns, trials)
	}
	if p.reference == nil {
		return a
	}
	a.sort()
	for q, s := range map[quantity]*Series{wall: &a.Wall, client: &a.Client, server: &a.Server} {
		share := 1.0
		if q == wall { // what a connection costs shows in its speed as far as a CPU limits that
			share = math.Min(1, stats.Median(p.busy))
		}
		*s = p.series(a.Cells, q, share)
	}
	a.bothSides()
	for _, f := range a.Wall.Figures {
		a.Transfers += f.N
	}
	return a
}

// beyond is the p value below which a candidate is out of a race: it is looked at again
// after every cycle, and with many others.
const beyond = 0.001

// Slower reports whether a cell certainly takes more wall time than some other one, by more
// than the margin.
func (a *Analysis) Slower(cell alg.Suite) bool {
	own := a.wall(cell)
	for _, f := range a.Wall.Figures {
		if ratio := own.Over(f.Estimate); own.Known() && f.Known() && ratio.Log > math.Log1p(stats.Margin) && ratio.P() < beyond {
			return true
		}
	}
	return false
}

// Same reports whether a cell is as fast as the reference, as far as that matters.
func (a *Analysis) Same(cell, reference alg.Suite) bool {
	own, other := a.wall(cell), a.wall(reference)
	return own.Known() && other.Known() && own.Over(other).Interval().Verdict() == stats.Equal
}

// wall is the wall time of a cell, if it is known.
func (a *Analysis) wall(cell alg.Suite) (e stats.Estimate) {
	if i := slices.Index(a.Cells, cell); i >= 0 {
		e = a.Wall.Figures[i].Estimate
	}
	return e
}

// turnsOf are the slices of one direction in the order of time, sitting by sitting.
func turnsOf(d record.Direction, trials map[int]record.Trial, batches []record.Slices) (out [][]record.Slice) {
	last := 0
	for _, b := range batches {
		if b.Sitting != last || len(out) == 0 {
			last, out = b.Sitting, append(out, nil)
		}
		for _, s := range b.Slices {
			if t := trials[s.Trial]; t.Workload == record.Sitting && t.Direction == d && s.Bytes > 0 {
				out[len(out)-1] = append(out[len(out)-1], s)
			}
		}
	}
	return out
}

// add takes the slices of a sitting: each in relation to those of the reference on both sides of it.
func (p *pairs) add(turns []record.Slice, trials map[int]record.Trial) {
	refers := func(i int) bool {
		return 0 <= i && i < len(turns) && trials[turns[i].Trial].Role == record.RoleReference
	}
	for i, s := range turns {
		t := trials[s.Trial]
		switch {
		case refers(i):
			p.reference = &t
			p.level(readingOf(s, 0))
		case refers(i-1) && refers(i+1):
			if p.of[s.Trial] == nil {
				p.of[s.Trial] = &pairing{cell: t.Cell().Suite}
			}
			p.of[s.Trial].relate(readingOf(turns[i-1], 0), readingOf(s, 0), readingOf(turns[i+1], 0))
		}
	}
}

// level takes a slice of the reference.
func (p *pairs) level(r reading) {
	for q, ns := range r.ns {
		if ns > 0 {
			p.levels[q] = append(p.levels[q], math.Log(ns/r.bytes))
		}
	}
	if r.ns[wall] > 0 {
		p.busy = append(p.busy, math.Max(r.ns[client], r.ns[server])/r.ns[wall])
	}
}

// relate takes a slice and those of the reference before and after it.
func (p *pairing) relate(before, own, after reading) {
	for q := range quantities {
		if before.ns[q] > 0 && own.ns[q] > 0 && after.ns[q] > 0 {
			usual := (before.ns[q]/before.bytes + after.ns[q]/after.bytes) / 2
			p.ratios[q] = append(p.ratios[q], math.Log(own.ns[q]/own.bytes/usual))
		}
	}
}

// series are the figures of one quantity.
func (p *pairs) series(cells []alg.Suite, q quantity, share float64) Series {
	s := Series{Figures: make([]Figure, len(cells))}
	reference := p.levels[q]
	if len(reference) == 0 {
		return s
	}
	level := stats.Median(reference)
	s.Level = stats.Scale(reference, level) / math.Sqrt(float64(len(reference)))
	ratios := p.ratios(q, share)
	ratios[p.reference.Cell().Suite] = stats.Estimate{N: 1}
	degrees := math.Inf(1)
	for i, cell := range cells {
		if e := ratios[cell]; e.Known() {
			if e.Err > 0 {
				degrees = min(degrees, e.DF)
			}
			e.Log += level
			s.Figures[i] = Figure{Estimate: e, Basis: e.N, Shared: 1}
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

// ratios estimates each cell's ratio to the reference: the mean of its
// connections' trimmed means. The error of one has two parts (a random-effects
// model): that of its pairs, whose spread all cells share, since five pairs say little of it, and
// that of being one connection of many, which the reference has, too.
func (p *pairs) ratios(q quantity, share float64) map[alg.Suite]stats.Estimate {
	means := map[alg.Suite][]float64{} // of a cell's connections
	inverse := map[alg.Suite]float64{} // of a cell: sum of 1 / pairs
	var influences [][]float64
	for _, id := range slices.Sorted(maps.Keys(p.of)) {
		if xs := p.of[id].ratios[q]; len(xs) > 0 {
			cell, t := p.of[id].cell, trim(xs)
			means[cell] = append(means[cell], t.Mean)
			inverse[cell] += 1 / float64(len(xs))
			influences = append(influences, t.Influences(xs))
		}
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

// trim leaves the same number of values out at either end.
func trim(xs []float64) stats.Trimmed {
	share := math.Floor(trimmed*float64(len(xs))) / float64(len(xs))
	return stats.Trim(slices.Sorted(slices.Values(xs)), share, 1-share)
}
