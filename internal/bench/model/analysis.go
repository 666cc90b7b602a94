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
	Transfers int
}

// Analyse fits everything to the transfers of one direction, in the order in
// which they were measured. cells are all that can be asked for, by canonical
// names; cores is how many client and server can use together, 0 if unknown.
func Analyse(direction record.Direction, cells []alg.Suite, transfers []Transfer, cores int) *Analysis {
	transfers = slices.DeleteFunc(slices.Clone(transfers), func(t Transfer) bool { return t.Cell.Direction != direction })
	a := &Analysis{Direction: direction, Cells: slices.Clone(cells), cores: cores, Transfers: len(transfers)}
	for _, t := range transfers {
		a.Cells = append(a.Cells, t.Cell.Suite)
	}
	slices.SortFunc(a.Cells, func(x, y alg.Suite) int {
		return cmp.Or(cmp.Compare(x.Cipher, y.Cipher), cmp.Compare(x.MAC, y.MAC))
	})
	a.Cells = slices.Compact(a.Cells)
	byCost := func(of func(Transfer) stats.Estimate, q quantity) Series {
		obs, stretches := a.observe(transfers, of, q)
		return fitSeries(a.Cells, obs, stretches, between(transfers, betweenCosts))
	}
	a.Client = byCost(func(t Transfer) stats.Estimate { return t.Client }, client)
	a.Server = byCost(func(t Transfer) stats.Estimate { return t.Server }, server)
	a.Works = slices.ContainsFunc(a.Client.Figures, func(f Figure) bool { return f.Known() })
	servers := slices.ContainsFunc(a.Server.Figures, func(f Figure) bool { return f.Known() })
	costlier := a.Client
	a.Total = a.Client
	if servers {
		a.Total, costlier = merged(a.Client, a.Server, sum), merged(a.Client, a.Server, math.Max)
	}
	if !a.Works {
		a.Wall = byCost(func(t Transfer) stats.Estimate { return t.Wall }, wall)
	} else {
		obs, _ := a.observe(transfers, func(t Transfer) stats.Estimate { return t.ratio }, wall)
		if coresLeft(cores, transfers) == 1 { // both sides share it
			a.Wall = fromCosts(a.Cells, a.toBoth(obs, transfers), a.Total, between(transfers, betweenTimes))
		} else {
			a.Wall = fromCosts(a.Cells, obs, costlier, between(transfers, betweenTimes))
		}
	}
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

// Between-run standard deviations of a cell beside all others, which nothing within a run
// shows: of nine quiet runs, and what a core that other programs keep busy adds.
const (
	betweenCosts = 0.002
	betweenTimes = 0.008
	betweenBusy  = 0.025
)

// between is the standard deviation of figures from one run to the next.
func between(transfers []Transfer, quiet float64) float64 {
	if len(transfers) == 0 || transfers[0].copied {
		return 0
	}
	return math.Hypot(quiet, betweenBusy*math.Min(1, transfers[0].foreign))
}

// toBoth makes ratios to the costlier side those to both sides together.
func (a *Analysis) toBoth(obs []observation, transfers []Transfer) []observation {
	k := 0
	for _, t := range transfers {
		if t.ratio.N > 0 {
			if t.Server.N > 0 {
				obs[k].log += math.Max(t.Client.Log, t.Server.Log) - t.Total.Log
			}
			k++
		}
	}
	return obs
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
		if e := t.slowedBy(q); e.N > 0 {
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// observe picks one quantity.
func (a *Analysis) observe(transfers []Transfer, of func(Transfer) stats.Estimate, q quantity) (out []observation, stretches int) {
	index := map[alg.Suite]int{}
	for i, cell := range a.Cells {
		index[cell] = i
	}
	stretchOf := map[int]int{}
	for i, t := range transfers {
		id := t.Stretch
		if id == 0 {
			id = -1 - i/stretch
		}
		if _, seen := stretchOf[id]; !seen {
			stretchOf[id] = len(stretchOf)
		}
		if e := of(t); e.N > 0 {
			o := observation{cell: index[t.Cell.Suite], stretch: stretchOf[id], log: e.Log, n: e.N, blocks: t.blocks[q], holdout: t.Trial.Role == record.RoleHoldout}
			if t.copied {
				o.n = 0
			}
			out = append(out, o)
		}
	}
	return out, max(1, len(stretchOf))
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
		if client := out.Figures[i]; !server.Known() || !client.Known() {
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
	return !slices.ContainsFunc(figures, func(f Figure) bool { return !f.Known() })
}

// PredictionErrors are the relative errors of the predictions of cells against their own
// measurements, of those that are wanted.
func (a *Analysis) PredictionErrors(s Series, wanted func(alg.Suite) bool) []float64 {
	var out []float64
	for i, f := range s.Figures {
		if wanted(a.Cells[i]) && f.N > 0 && f.Foretold {
			out = append(out, math.Abs(math.Expm1(f.Predicted-f.Measured)))
		}
	}
	return out
}
