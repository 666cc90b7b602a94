package rank

import (
	"math"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
)

// Gain is how much faster one cell is than another in the same direction.
type Gain struct {
	From, To   Cell
	Throughput *Quantity // ratio of throughput, above 1: To is faster; nil if unknown
	Cost       *Quantity // ratio of CPU cost, of both sides or of the clients; above 1: To costs less; nil if unknown
	Tie        bool      // the run cannot tell the two apart
}

// Find returns the cell of a cipher and MAC, under any of their names.
func (r *Ranking) Find(suite alg.Suite, d bench.Direction) (Cell, bool) {
	want := canonical(alg.NewSuite(suite.Cipher, suite.MAC, ""))
	for _, c := range r.Bulk {
		if c.Direction == d && canonical(c.Suite) == want {
			return c, true
		}
	}
	return Cell{}, false
}

// Gain compares two cells of one run. Their errors are taken for independent.
func (r *Ranking) Gain(from, to Cell) Gain {
	g := Gain{From: from, To: to, Tie: from.Group == to.Group}
	of := bothSides
	if from.Server == nil || to.Server == nil {
		of = clientAlone
	}
	g.Throughput = speedup(from.Throughput, to.Throughput, 1)
	g.Cost = speedup(of.cost(from.Client, from.Server), of.cost(to.Client, to.Server), -1)
	return g
}

// speedup is the ratio of two figures, of which more is better where sign is 1.
func speedup(from, to *Quantity, sign float64) *Quantity {
	if from == nil || to == nil || from.Value <= 0 || to.Value <= 0 {
		return nil
	}
	q := ratio(sign*math.Log(to.Value/from.Value), math.Hypot(errorOf(from), errorOf(to)), min(from.N, to.N)).Speed
	return &q
}
