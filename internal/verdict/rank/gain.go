package rank

import (
	"math"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Gain is how much faster one cell is than another in the same direction.
type Gain struct {
	From, To   Cell
	Throughput *Quantity // ratio of throughput, above 1: To is faster; nil if unknown
	Cost       *Quantity // ratio of CPU cost, of both sides or of the clients; above 1: To costs less; nil if unknown
	Tie        bool      // the run cannot tell the two apart
}

// Find returns the cell of a cipher and MAC, under any of their names.
func (r *Ranking) Find(suite alg.Suite, d record.Direction) (Cell, bool) {
	want := suite.Computation()
	for _, c := range r.Bulk {
		if c.Direction == d && c.Suite.Computation() == want {
			return c, true
		}
	}
	return Cell{}, false
}

// Gain compares two cells of one run. Their errors are taken for independent.
func (r *Ranking) Gain(from, to Cell) Gain {
	g := Gain{From: from, To: to}
	g.Throughput = speedup(to.Within.Throughput, from.Within.Throughput)
	if (from.Server == nil) == (to.Server == nil) {
		g.Cost = speedup(from.Within.Total, to.Within.Total)
	} else {
		g.Cost = speedup(from.Within.Client, to.Within.Client)
	}
	g.Tie = tied(g.ratio(r.By))
	return g
}

// ratio is the one that decides, or what there is.
func (g Gain) ratio(by By) *Quantity {
	if by == Cost && g.Cost != nil || g.Throughput == nil {
		return g.Cost
	}
	return g.Throughput
}

// tied reports whether a ratio cannot be told from 1, or is too near to it to
// matter.
func tied(q *Quantity) bool {
	return q == nil || q.Lo <= 1 && 1 <= q.Hi || math.Abs(math.Log(q.Value)) < minEffect/100
}

// speedup is the ratio of two figures, nil where one is unknown.
func speedup(a, b stats.Estimate) *Quantity {
	if !a.Known() || !b.Known() {
		return nil
	}
	q := a.Over(b).Interval()
	return &q
}
