package model

import (
	"cmp"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

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
	Transfers int
}

// Analyse fits everything to the transfers of one direction, in the order in
// which they were measured. cells are all that can be asked for, by canonical
// names; cores is how many client and server can use together, 0 if unknown.
func Analyse(direction record.Direction, cells []alg.Suite, s Sittings, cores int) *Analysis {
	s.Connections = slices.DeleteFunc(slices.Clone(s.Connections), func(t Transfer) bool { return t.Cell.Direction != direction })
	a := &Analysis{Direction: direction, Cells: slices.Clone(cells), cores: cores, Transfers: len(s.Connections)}
	for _, t := range s.Connections {
		a.Cells = append(a.Cells, t.Cell.Suite)
	}
	a.sort()
	a.Client, a.Server = a.fit(s, client), a.fit(s, server)
	a.Works, a.Total = a.Client.known(), a.Client
	if a.Server.known() {
		a.Total = together(a.Client, a.Server, sum)
	}
	if !a.Works {
		a.Wall = a.fit(s, wall)
		return a
	}
	cost, ratio := a.costlier(), a.observe(s, wall)
	if s.coresLeft(cores) == 1 { // both sides share it
		cost, ratio = a.Total, a.observe(s, wall, Transfer.lessThanBoth)
	}
	a.Wall = fromCosts(a.Cells, ratio, cost, s.between(betweenTimes))
	return a
}

// fit estimates one quantity of all cells.
func (a *Analysis) fit(s Sittings, q quantity) Series {
	return fitSeries(a.Cells, a.observe(s, q), s.between(betweenCosts))
}

// sort orders the cells, each once.
func (a *Analysis) sort() {
	slices.SortFunc(a.Cells, func(x, y alg.Suite) int {
		return cmp.Or(cmp.Compare(x.Cipher, y.Cipher), cmp.Compare(x.MAC, y.MAC))
	})
	a.Cells = slices.Compact(a.Cells)
}

// Between-run standard deviations of a cell beside all others, which nothing within a run
// shows: of nine quiet runs, and what a core that other programs keep busy adds.
const (
	betweenCosts = 0.002
	betweenTimes = 0.012
	betweenBusy  = 0.025
)

// between is the standard deviation of figures from one run to the next.
func (s Sittings) between(quiet float64) float64 {
	if s.copied {
		return 0
	}
	return math.Hypot(quiet, betweenBusy*math.Min(1, s.Foreign))
}

// coresLeft is how many cores other programs left to client and server, 0 if unknown.
func (s Sittings) coresLeft(cores int) int {
	if cores == 0 {
		return 0
	}
	return max(1, cores-int(math.Round(s.Foreign)))
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// observe picks one quantity, and adds what else is to be added to its logarithms.
func (a *Analysis) observe(s Sittings, q quantity, more ...func(Transfer) float64) (out []observation) {
	for _, t := range s.Connections {
		x := t.of[q]
		if x.N == 0 {
			continue
		}
		o := observation{cell: slices.Index(a.Cells, t.Cell.Suite), log: x.Log, n: x.N, blocks: x.blocks, moved: x.moved, longer: longer(t.Cell), holdout: t.Trial.Role == record.RoleHoldout}
		for _, of := range more {
			o.log += of(t)
		}
		if s.copied {
			o.n = 0
		}
		out = append(out, o)
	}
	return out
}

// Cost is what orders cells by cost: the side that has more to do, because it
// decides the speed where each has a core, or both together where they share one core.
// So a ranking by cost foretells that by throughput, on a quieter machine.
func (a *Analysis) Cost() Series {
	if a.cores == 1 {
		return a.Total
	}
	return a.costlier()
}

// costlier has of each cell the side that has more to do.
func (a *Analysis) costlier() Series {
	if !a.Server.known() {
		return a.Client
	}
	return together(a.Client, a.Server, math.Max)
}

// Complete reports whether every cell is measured or predicted.
func (a *Analysis) Complete() bool {
	figures := a.Wall.Figures
	if a.Works {
		figures = a.Total.Figures
	}
	return !slices.ContainsFunc(figures, func(f Figure) bool { return !f.Known() })
}

// PredictionErrors are the relative errors of the predictions of cells against their own
// measurements, of those that are wanted.
func (a *Analysis) PredictionErrors(s Series, wanted func(alg.Suite) bool) []float64 {
	var out []float64
	for i, f := range s.Figures {
		if wanted(a.Cells[i]) && f.N > 0 && f.Others.Known() {
			out = append(out, math.Abs(math.Expm1(-f.Others.Log)))
		}
	}
	return out
}
