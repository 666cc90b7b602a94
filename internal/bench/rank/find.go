package rank

import (
	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

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

// Deciding is the figure of a cell by which the cells are ordered.
func (r *Ranking) Deciding(c Cell) *Quantity {
	if r.By == Throughput {
		return c.Throughput
	}
	return r.Busiest(c)
}

// Busiest is the CPU cost that bounds a cell: that of its costlier side, or of both
// where they share one core; nil if unknown.
func (r *Ranking) Busiest(c Cell) *Quantity {
	switch {
	case r.OneCore() && c.Client != nil && c.Server != nil:
		return r.shown(c.Within.Total, Cost)
	case c.Server != nil && c.Client != nil && c.Server.Value > c.Client.Value:
		return c.Server
	}
	return c.Client
}
