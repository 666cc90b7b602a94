package advise

import (
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Gain is the speed of one cell relative to another in the same direction.
type Gain struct {
	From, To   rank.Cell        `json:"-"`
	Direction  record.Direction `json:"direction"`
	Throughput *stats.Interval  `json:"throughput_ratio,omitempty"` // above 1: To is faster; nil if unknown
	Cost       *stats.Interval  `json:"cpu_ratio,omitempty"`        // of the CPU time of both sides or of the clients; above 1: To costs less; nil if unknown
	Verdict    stats.Verdict    `json:"verdict"`                    // of the ratio that decides
	Chance     float64          `json:"chance"`                     // that To is better by it
	ratio      stats.Estimate   // that decides
}

// gainOf compares two cells of one run. It assumes independent errors.
func gainOf(r *rank.Ranking, from, to rank.Cell) Gain {
	g := Gain{From: from, To: to, Direction: to.Direction, Verdict: stats.NotEnough}
	if from.Suite.Computation() == to.Suite.Computation() {
		from, to = exact(from), exact(to)
	}
	speed := over(to.Throughput.Estimate, from.Throughput.Estimate)
	cost := over(from.Total.Estimate, to.Total.Estimate)
	if from.Server.Known() != to.Server.Known() {
		cost = over(from.Client.Estimate, to.Client.Estimate)
	}
	g.Throughput, g.Cost = speed.OrNil(), cost.OrNil()
	g.ratio = speed
	if g.Decides(r.By) == g.Cost {
		g.ratio = cost
	}
	if g.ratio.Known() {
		g.Verdict, g.Chance = g.ratio.Interval().Verdict(), g.ratio.Chance()
	}
	return g
}

// exact returns a cell without errors, for a comparison with itself.
func exact(c rank.Cell) rank.Cell {
	for _, f := range []*rank.Figure{&c.Throughput, &c.Client, &c.Server, &c.Total} {
		f.Err = 0
	}
	return c
}

// Decides returns the ratio of the quantity that a ranking is ordered by, or the known one.
func (g Gain) Decides(by rank.By) *stats.Interval {
	if by == rank.Cost && g.Cost != nil || g.Throughput == nil {
		return g.Cost
	}
	return g.Throughput
}

// ByChance reports whether To is better when it alone is tested, but not as the best of many.
func (g Gain) ByChance(by rank.By) bool {
	q := g.Decides(by)
	return q != nil && g.Verdict == stats.NotEnough && q.Verdict() == stats.Better
}

// over returns the ratio of two figures, zero where one is unknown.
func over(a, b stats.Estimate) stats.Estimate {
	if !a.Known() || !b.Known() {
		return stats.Estimate{}
	}
	return a.Over(b)
}
