package rank

import (
	"math"

	"sshpace/internal/base/alg"
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
	of := bothSides
	if from.Server == nil || to.Server == nil {
		of = clientAlone
	}
	g.Throughput = speedup(from.Throughput, to.Throughput, 1, math.Hypot(from.errs.throughput, to.errs.throughput))
	g.Cost = speedup(of.cost(from.Client, from.Server), of.cost(to.Client, to.Server), -1, math.Hypot(from.costErr(of), to.costErr(of)))
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

// speedup is the ratio of two figures, of which more is better where sign is 1.
// err is the standard error of its logarithm.
func speedup(from, to *Quantity, sign, err float64) *Quantity {
	if from == nil || to == nil || from.Value <= 0 || to.Value <= 0 {
		return nil
	}
	q := ratio(sign*math.Log(to.Value/from.Value), err, min(from.N, to.N)).Speed
	return &q
}
