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

// Paired analyses the slices of one direction where a reference connection took
// its turn before and after each other one (a paired comparison: what slows the path
// or a machine for longer than three slices cancels in their ratio). Figures are
// those of the reference times a cell's ratio; the reference's own is exact by
// definition, so that ratios to it have their own errors and no other.
func Paired(direction record.Direction, cells []alg.Suite, trials map[int]record.Trial, batches []record.Slices) *Analysis {
	a := &Analysis{Direction: direction, Cells: slices.Clone(cells)}
	turns := turnsOf(direction, trials, batches)
	pairs, reference := pair(turns, trials)
	if reference < 0 {
		return a
	}
	a.sort()
	base := trials[reference].Cell().Suite
	for q, s := range map[quantity]*Series{wall: &a.Wall, client: &a.Client, server: &a.Server, total: &a.Total} {
		share := 1.0
		if q == wall { // what a connection costs shows in its speed as far as a CPU limits that
			share = busyShare(turns, trials)
		}
		*s = seriesOf(a.Cells, base, levels(turns, trials, q), pairs, q, share)
	}
	a.Works = slices.ContainsFunc(a.Client.Figures, func(f Figure) bool { return f.Known() })
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
	i := slices.Index(a.Cells, cell)
	if i < 0 || !a.Wall.Figures[i].Known() {
		return false
	}
	own := a.Wall.Figures[i].Estimate
	for _, f := range a.Wall.Figures {
		if ratio := own.Over(f.Estimate); f.Known() && ratio.Log > math.Log1p(stats.Margin) && ratio.P() < beyond {
			return true
		}
	}
	return false
}

// Same reports whether a cell is as fast as the reference, as far as that matters.
func (a *Analysis) Same(cell, reference alg.Suite) bool {
	i, k := slices.Index(a.Cells, cell), slices.Index(a.Cells, reference)
	if i < 0 || k < 0 {
		return false
	}
	own, other := a.Wall.Figures[i], a.Wall.Figures[k]
	return own.Known() && other.Known() && own.Over(other.Estimate).Interval().Verdict() == stats.Equal
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

// pair relates each slice to those of the reference on both sides of it. reference is
// a trial of it, -1 if there is none.
func pair(turns [][]record.Slice, trials map[int]record.Trial) (pairs map[int]*pairing, reference int) {
	pairs, reference = map[int]*pairing{}, -1
	refers := func(s record.Slice) bool { return trials[s.Trial].Role == record.RoleReference }
	for _, all := range turns {
		for i, s := range all {
			if refers(s) {
				reference = s.Trial
				continue
			}
			if i == 0 || i == len(all)-1 || !refers(all[i-1]) || !refers(all[i+1]) {
				continue
			}
			p := pairs[s.Trial]
			if p == nil {
				p = &pairing{cell: trials[s.Trial].Cell().Suite}
				pairs[s.Trial] = p
			}
			for q := range quantities {
				own, before, after := perByte(s, q), perByte(all[i-1], q), perByte(all[i+1], q)
				if own > 0 && before > 0 && after > 0 {
					p.ratios[q] = append(p.ratios[q], math.Log(own/((before+after)/2)))
				}
			}
		}
	}
	return pairs, reference
}

// perByte is what a slice took per byte in ns; 0 if unknown.
func perByte(s record.Slice, q quantity) float64 {
	r := readingOf(s, 0)
	return r.ns[q] / r.bytes
}

// levels are the logarithms of what the reference took per byte, in the order of time.
func levels(turns [][]record.Slice, trials map[int]record.Trial, q quantity) (out []float64) {
	for _, s := range slices.Concat(turns...) {
		if x := perByte(s, q); x > 0 && trials[s.Trial].Role == record.RoleReference {
			out = append(out, math.Log(x))
		}
	}
	return out
}

// busyShare is the part of the reference's time in which the busier side needs its CPU.
func busyShare(turns [][]record.Slice, trials map[int]record.Trial) float64 {
	var shares []float64
	for _, s := range slices.Concat(turns...) {
		if r := readingOf(s, 0); trials[s.Trial].Role == record.RoleReference && r.ns[wall] > 0 {
			shares = append(shares, math.Max(r.ns[client], r.ns[server])/r.ns[wall])
		}
	}
	return math.Min(1, stats.Median(shares))
}

// seriesOf are the figures of one quantity.
func seriesOf(cells []alg.Suite, base alg.Suite, reference []float64, pairs map[int]*pairing, q quantity, share float64) Series {
	s := Series{Figures: make([]Figure, len(cells))}
	if len(reference) == 0 {
		return s
	}
	level := stats.Median(reference)
	s.Level = stats.Scale(reference, level) / math.Sqrt(float64(len(reference)))
	ratios := ratiosOf(pairs, q, share)
	degrees := math.Inf(1)
	for i, cell := range cells {
		f := &s.Figures[i]
		f.Shared = 1
		switch e := ratios[cell]; {
		case cell == base:
			f.Log, f.N, f.Basis, f.Measured = level, 1, 1, level
		case e.Known():
			f.Log, f.Err, f.N, f.Basis = level+e.Log, e.Err, e.N, e.N
			f.Measured, f.Own = f.Log, e.Err
			degrees = min(degrees, e.DF)
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

// ratiosOf estimates each cell's ratio to the reference: the mean of its
// connections' trimmed means. The error of one has two parts (a random-effects
// model): that of its pairs, whose spread all cells share, since five pairs say little of it, and
// that of being one connection of many, which the reference has, too.
func ratiosOf(pairs map[int]*pairing, q quantity, share float64) map[alg.Suite]stats.Estimate {
	means := map[alg.Suite][]float64{} // of a cell's connections
	pairsOf := map[alg.Suite]float64{} // of a cell: sum of 1 / pairs
	var influences [][]float64
	for _, id := range slices.Sorted(maps.Keys(pairs)) {
		if xs := pairs[id].ratios[q]; len(xs) > 0 {
			cell, t := pairs[id].cell, trim(xs)
			means[cell] = append(means[cell], t.Mean)
			pairsOf[cell] += 1 / float64(len(xs))
			influences = append(influences, t.Influences(xs))
		}
	}
	within, degrees := stats.PooledDeviation(influences)
	out := map[alg.Suite]stats.Estimate{}
	if degrees == 0 {
		return out
	}
	between, betweenDegrees := connectionEffect(means)
	for cell, xs := range means {
		n := float64(len(xs))
		e := stats.Estimate{Log: stats.Mean(xs), Err: within * math.Sqrt(pairsOf[cell]) / n, DF: degrees, N: len(xs)}
		out[cell] = e.WithError(share*between*math.Sqrt(2/n), betweenDegrees) // its own and the reference's
	}
	return out
}

// trim leaves the same number of values out at either end.
func trim(xs []float64) stats.Trimmed {
	share := math.Floor(trimmed*float64(len(xs))) / float64(len(xs))
	return stats.Trim(slices.Sorted(slices.Values(xs)), share, 1-share)
}

// connectionEffect is the standard deviation between connections of one cell: what is
// usual, and what cells with several of them show.
func connectionEffect(means map[alg.Suite][]float64) (deviation, degrees float64) {
	own, ownDegrees := stats.PooledDeviation(slices.Collect(maps.Values(means)))
	degrees = connectionDegrees + ownDegrees
	return math.Sqrt((connectionSpread*connectionSpread*connectionDegrees + own*own*ownDegrees) / degrees), degrees
}
