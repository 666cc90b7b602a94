package rank

// The words for what orders a ranking and what a comparison relates are here,
// so that every format says the same.

const (
	throughputWord   = "throughput"
	costWord         = "CPU cost of "
	bothSidesWord    = "both sides"
	clientAloneWord  = "the client"
	costlierSideWord = "the costlier side"
)

// BulkOrder says by what the cells are ordered.
func (r *Ranking) BulkOrder() string {
	if r.By == Throughput {
		return throughputWord
	}
	return costWord + r.CostSide()
}

// CostSide says whose cost orders a ranking by cost.
func (r *Ranking) CostSide() string {
	switch {
	case !r.has(serverCost):
		return clientAloneWord
	case r.cores == 1:
		return bothSidesWord
	}
	return costlierSideWord
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
	case r.cores == 1 && c.Client != nil && c.Server != nil:
		return r.shown(c.Within.Total, Cost)
	case c.Server != nil && c.Client != nil && c.Server.Value > c.Client.Value:
		return c.Server
	}
	return c.Client
}

// KexOrder says by what the key exchanges are ordered.
func (r *Ranking) KexOrder() string {
	switch {
	case r.KexBy == Throughput:
		return "login time"
	case len(r.Kex) > 0 && r.Kex[0].Server == nil:
		return costWord + clientAloneWord
	}
	return costWord + bothSidesWord
}

// CostOf says whose CPU cost is meant, of both sides or the client's alone.
func CostOf(bothSides bool) string {
	if bothSides {
		return costWord + bothSidesWord
	}
	return costWord + clientAloneWord
}
