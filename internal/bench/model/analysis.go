package model

import (
	"cmp"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Analysis is the result of all transfers of one direction for all its cells.
type Analysis struct {
	Direction record.Direction
	Cells     []alg.Suite // canonical names, sorted
	Wall      Series      // wall time per byte
	Client    Series      // client CPU time per byte
	Server    Series      // server CPU time per byte
	Total     Series      // both sides, or the client alone without the server
	// Cost orders cells by cost: the busier side, because it decides the speed where each has a
	// core, or both together where they share one core. So a ranking by cost foretells the one by
	// throughput on a quieter machine.
	Cost  Series
	cores int
}

// Analyze fits everything to the transfers of one direction, in the order of their measurement.
// cells are all cells that can be asked for, by canonical names; cores is how many client and
// server can use together, 0 if unknown.
func Analyze(direction record.Direction, cells []alg.Suite, s Sittings, cores int) *Analysis {
	s.Connections = slices.DeleteFunc(slices.Clone(s.Connections), func(t *Transfer) bool { return t.Trial.Direction != direction })
	a := &Analysis{Direction: direction, Cells: slices.Clone(cells), cores: cores}
	for _, t := range s.Connections {
		a.Cells = append(a.Cells, t.Trial.Cell().Suite)
	}
	a.sort()
	a.Client, a.Server = a.fit(s, client), a.fit(s, server)
	if a.bothSides(); a.Client.Known() {
		a.Wall = fromCosts(a.Cells, a.observe(s, wall), a.Cost)
	} else {
		a.Wall = a.fit(s, wall)
	}
	return a
}

// bothSides combines the figures of both sides.
func (a *Analysis) bothSides() {
	a.Total, a.Cost = a.Client, a.Client
	if !a.Server.Known() {
		return
	}
	a.Total, a.Cost = together(a.Client, a.Server, sum), together(a.Client, a.Server, math.Max)
	if a.cores == 1 {
		a.Cost = a.Total
	}
}

// betweenBusy is how much cells move relative to each other from one run to the next, for each of
// the two cores of client and server that other programs keep busy, as a standard error:
// computations that share a core with them, sha2-512 and UMAC most of all, are slowed in the best
// slices, too.
const betweenBusy = 0.02

// fit estimates one quantity of all cells.
func (a *Analysis) fit(s Sittings, q quantity) Series {
	return fitSeries(a.Cells, a.observe(s, q), betweenBusy*min(2, s.Slowed.Foreign))
}

// sort orders the cells, each once.
func (a *Analysis) sort() {
	slices.SortFunc(a.Cells, func(x, y alg.Suite) int {
		return cmp.Or(cmp.Compare(x.Cipher, y.Cipher), cmp.Compare(x.MAC, y.MAC))
	})
	a.Cells = slices.Compact(a.Cells)
}

func one(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// observe returns one observation of a quantity for each connection that has a value of it.
func (a *Analysis) observe(s Sittings, q quantity) (out []observation) {
	for _, t := range s.Connections {
		x := t.of[q]
		if x.N == 0 {
			continue
		}
		cell := t.Trial.Cell()
		o := observation{located: x, cell: slices.Index(a.Cells, cell.Suite), holdout: t.Trial.Role == record.RoleHoldout}
		if q == wall && a.cores == 1 { // both sides share it
			o.Log += t.sides(math.Max) - t.sides(sum)
		}
		if t.Trial.Workload == record.Copy {
			o.N = 0
		}
		out = append(out, o)
	}
	return out
}

// Complete reports whether every cell is measured or predicted.
func (a *Analysis) Complete() bool {
	return !slices.ContainsFunc(a.Wall.Figures, func(f Effect) bool { return !f.Known() })
}
