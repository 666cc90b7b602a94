package model

import (
	"cmp"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// stretch is how many copies in a row share one estimate of the machine's
// level: about seven seconds, well below the time scale of frequency and load.
const stretch = 16

// Analysis is what all transfers of one direction say about all its cells.
type Analysis struct {
	Direction record.Direction
	Cells     []alg.Suite // canonical names, sorted
	Wall      Series      // wall time per byte
	Client    Series      // client CPU time per byte
	Server    Series      // server CPU time per byte
	Total     Series      // both sides, or the client alone without the server
	Works     bool        // costs could be measured
	cores     int
	index     map[alg.Suite]int // of a cell in Cells
	Transfers int
}

// Analyse fits everything to the transfers of one direction, in the order in
// which they were measured. cells are all that can be asked for, by canonical
// names; cores is how many client and server can use together, 0 if unknown.
func Analyse(direction record.Direction, cells []alg.Suite, transfers []Transfer, cores int) *Analysis {
	a := &Analysis{Direction: direction, Cells: slices.Clone(cells), cores: cores, index: map[alg.Suite]int{}}
	for i, cell := range a.Cells {
		a.index[cell] = i
	}
	for _, t := range transfers {
		if _, known := a.index[t.Cell.Suite]; !known && t.Cell.Direction == direction {
			a.index[t.Cell.Suite] = 0
			a.Cells = append(a.Cells, t.Cell.Suite)
		}
	}
	slices.SortFunc(a.Cells, func(x, y alg.Suite) int {
		return cmp.Or(cmp.Compare(x.Cipher, y.Cipher), cmp.Compare(x.MAC, y.MAC))
	})
	for i, cell := range a.Cells {
		a.index[cell] = i
	}
	for _, t := range transfers {
		if t.Cell.Direction == direction {
			a.Transfers++
		}
	}
	byCost := func(q quantity) Series {
		return fitSeries(a.Cells, a.observe(transfers, q), additive(a.Cells), false)
	}
	a.Client, a.Server, a.Total = byCost(client), byCost(server), byCost(total)
	a.sum()
	works := a.works()
	predict := additive(a.Cells)
	if a.Works {
		predict = fromCosts(a.Cells, works, coresLeft(cores, transfers), a.Client.etm)
	}
	a.Wall = fitSeries(a.Cells, a.observe(transfers, wall), predict, a.Works)
	for q, s := range map[quantity]*Series{client: &a.Client, server: &a.Server, total: &a.Total} {
		s.slow(a, transfers, q)
	}
	if cost := a.Cost(); a.Works { // wall time is a multiple of the CPU time of the costlier side
		for i := range a.Wall.Figures {
			a.Wall.Figures[i].Slowed = cost.Figures[i].Slowed
		}
	}
	return a
}

// sum makes the cost of both sides that of the client and the server, where each is
// only predicted: three predictions by themselves need not add up.
func (a *Analysis) sum() {
	for i := range a.Total.Figures {
		client, server, total := a.Client.Figures[i], a.Server.Figures[i], &a.Total.Figures[i]
		if total.N == 0 && client.Known && server.Known {
			own, other := math.Exp(client.Log), math.Exp(server.Log)
			total.Known, total.Log = true, math.Log(own+other)
			total.Err = math.Hypot(own*client.Err, other*server.Err) / (own + other)
			total.Repeat = math.Hypot(own*client.Repeat, other*server.Repeat) / (own + other)
		}
	}
}

// coresLeft is how many cores other programs left to client and server, 0 if unknown.
func coresLeft(cores int, transfers []Transfer) int {
	if cores == 0 || len(transfers) == 0 {
		return cores
	}
	return max(1, cores-int(math.Round(transfers[0].foreign)))
}

// slow fills in what other guests added to each cell.
func (s *Series) slow(a *Analysis, transfers []Transfer, q quantity) {
	kinds := map[string]stats.Estimate{}
	for _, t := range transfers {
		if e := t.slowed[q]; e.N > 0 {
			kinds[execution(t.Cell)] = e
		}
	}
	for i, cell := range a.Cells {
		s.Figures[i].Slowed = kinds[execution(record.CellOf(cell, a.Direction))]
	}
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// observe picks one quantity.
func (a *Analysis) observe(transfers []Transfer, q quantity) observations {
	out := observations{}
	stretchOf := map[int]int{}
	index := 0
	for _, t := range transfers {
		if t.Cell.Direction != a.Direction {
			continue
		}
		id := t.Stretch
		if id == 0 {
			id = -1 - index/stretch
			index++
		}
		if _, seen := stretchOf[id]; !seen {
			stretchOf[id] = len(stretchOf)
		}
		if v := t.of(q); v.N > 0 {
			out.list = append(out.list, observation{
				cell: a.index[t.Cell.Suite], stretch: stretchOf[id], log: v.Log, variance: v.Err * v.Err,
				holdout: t.Trial.Role == record.RoleHoldout, chancy: q == wall && t.fewParts,
			})
			out.apart = math.Max(out.apart, t.apart[q])
		}
	}
	out.stretches = max(1, len(stretchOf))
	return out
}

// works tells the wall model what each cell costs on both sides.
func (a *Analysis) works() []work {
	out := make([]work, len(a.Cells))
	for i := range out {
		client, server := a.Client.Figures[i], a.Server.Figures[i]
		if !client.Known {
			continue
		}
		a.Works = true
		out[i] = work{more: math.Exp(client.Log), err: client.own}
		if server.Known {
			s := math.Exp(server.Log)
			out[i] = work{math.Max(s, out[i].more), math.Min(s, out[i].more), math.Max(client.own, server.own)}
		}
	}
	return out
}

// Cost is what orders cells by cost: the side that has more to do, because it
// decides the speed where each has a core, or both together where they share one.
// So a ranking by cost foretells that by throughput, on a quieter machine.
func (a *Analysis) Cost() Series {
	if a.cores == 1 || len(a.Server.Figures) == 0 {
		return a.Total
	}
	out := a.Client
	out.Figures = slices.Clone(a.Client.Figures)
	for i, server := range a.Server.Figures {
		if client := out.Figures[i]; !server.Known || !client.Known {
			continue
		} else if server.Log > client.Log {
			out.Figures[i] = server
		}
	}
	out.Degrees = math.Min(a.Client.Degrees, a.Server.Degrees)
	out.Level = math.Max(a.Client.Level, a.Server.Level)
	return out
}

// Complete reports whether every cell is measured or predicted.
func (a *Analysis) Complete() bool {
	figures := a.Wall.Figures
	if a.Works {
		figures = a.Total.Figures
	}
	return !slices.ContainsFunc(figures, func(f Figure) bool { return !f.Known })
}

// HoldoutErrors are the relative errors of the predictions of one series for
// cells that were never fitted.
func (a *Analysis) HoldoutErrors(s Series, held func(alg.Suite) bool) []float64 {
	var out []float64
	for i, f := range s.Figures {
		if held(a.Cells[i]) && f.N > 0 && f.Foretold {
			out = append(out, math.Abs(math.Expm1(f.Predicted-f.Measured)))
		}
	}
	return out
}

// PredictionErrors are the relative errors of all cells' predictions from the
// others, against their own measurements.
func (s Series) PredictionErrors() []float64 {
	var out []float64
	for _, f := range s.Figures {
		if f.N > 0 && f.Foretold {
			out = append(out, math.Abs(math.Expm1(f.Predicted-f.Measured)))
		}
	}
	return out
}

// TypicalError is the median standard error of the known figures.
func (s Series) TypicalError() float64 { return s.typical(func(f Figure) float64 { return f.Err }) }

func (s Series) typical(of func(Figure) float64) float64 {
	var errs []float64
	for _, f := range s.Figures {
		if f.Known {
			errs = append(errs, of(f))
		}
	}
	return stats.Median(errs)
}

// Noise is the relative difference that two equal cells stay below in 95 % of
// runs.
func (s Series) Noise() float64 {
	return s.difference(s.typical(func(f Figure) float64 { return f.own }))
}

// Resolution is the same of any two cells: what the machine does beside them changes some
// ciphers and MACs more than others, which equal cells do not feel.
func (s Series) Resolution() float64 { return s.difference(s.TypicalError()) }

// difference is what two cells with such a standard error stay below in 95 % of runs.
func (s Series) difference(typical float64) float64 {
	return math.Expm1(stats.StudentQuantile(s.Degrees) * math.Sqrt2 * typical)
}

// Interval is a figure on the original scale with the interval in which 95 % of
// repeated runs find it: it holds the errors of both runs, and that of the
// machine's own level, which does not matter within a ranking.
func (s Series) Interval(i int) stats.Interval {
	f := s.Figures[i]
	return stats.Estimate{Log: f.Log, Err: math.Hypot(math.Sqrt2*f.Repeat, s.Level), DF: s.Degrees, N: f.N}.Interval()
}
