package rank

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/bench/model"
	"sshpace/internal/record"
)

// maxNoise is the noise floor of throughput, in percent, from which on a ranking by cost is better,
// unless that resolves much less: above it, runs agree on costs better than on throughput even
// where both resolve equally.
const maxNoise = 5.0

// rankBulk fills and orders the cells.
func (r *Ranking) rankBulk(d *data, by By) {
	if len(d.analyses) == 0 {
		return
	}
	r.judge(d.analyses)
	r.By, r.forced = r.choose(by), by == Throughput || by == Cost
	for _, a := range d.analyses {
		r.addCells(d, a)
	}
	half := len(d.drift) / 2 // a trend is twice the difference of the halves
	r.Harness.Drift = 100 * math.Expm1(2*(stats.Mean(d.drift[half:])-stats.Mean(d.drift[:half])))
}

// judge fills in the quality of the run: that of the worst direction, because one number has to
// serve both.
func (r *Ranking) judge(analyses []*model.Analysis) {
	var client []float64
	for _, a := range analyses {
		costs := a.Client
		if !a.Client.Known() {
			costs = a.Wall
		}
		client = append(client, costs.PredictionErrors()...)
		r.Model.Interaction = max(r.Model.Interaction, 100*costs.Interaction)
		r.Noise.Cost = max(r.Noise.Cost, 100*a.Cost.Noise())
		r.Noise.Throughput = max(r.Noise.Throughput, 100*a.Wall.Noise())
		r.levelCost, r.levelWall = max(r.levelCost, a.Total.Level), max(r.levelWall, a.Wall.Level)
	}
	r.Model.HoldoutCells = len(client)
	r.Model.HoldoutError, r.Model.HoldoutP95 = 100*stats.Median(client), 100*stats.Quantile(client, 0.95)
}

// choose resolves Auto: the cost where throughput does not distinguish cells.
func (r *Ranking) choose(by By) By {
	switch {
	case r.Noise.Cost == 0, r.Campaign.Server == record.ServerRemote && by != Cost:
		return Throughput
	case by == Throughput || by == Cost:
		return by
	case r.Noise.Throughput > maxNoise && r.Noise.Cost < 1.5*r.Noise.Throughput:
		return Cost
	}
	return Throughput
}

// Tie is the difference, in percent, below which the ranking treats cells as equal: one that makes
// no difference to anybody, or that this run cannot resolve.
func (r *Ranking) Tie() float64 {
	return max(100*stats.Margin, pick(r.By, r.Noise.Cost, r.Noise.Throughput))
}

// addCells appends the cells of one direction in their order.
func (r *Ranking) addCells(d *data, a *model.Analysis) {
	var cells []Cell
	for i := range a.Cells {
		if c := r.cell(d, a, i); c.Throughput.Known() || c.Client.Known() {
			cells = append(cells, c)
		} else {
			r.Missing = append(r.Missing, c.Suite)
		}
	}
	by := func(c Cell) stats.Estimate { return pick(r.By, c.cost, c.Throughput.Inverse()) }
	order(cells, by, func(c *Cell, rank int, group string) {
		if c.Rank = rank; r.Campaign.Server != record.ServerRemote { // pairs say how each compares with one, not with all others
			c.Group = group
		}
	})
	r.Bulk = append(r.Bulk, cells...)
}

// order sorts lines by the deciding figure, least first and unknown ones last, and sets the rank of
// each, from 1, and the letter of its ties.
func order[L any](lines []L, by func(L) stats.Estimate, place func(line *L, rank int, group string)) {
	log := func(line L) float64 {
		if e := by(line); e.Known() {
			return e.Log
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(lines, func(a, b L) int { return cmp.Compare(log(a), log(b)) })
	var known []stats.Estimate
	for _, line := range lines {
		if e := by(line); e.Known() {
			known = append(known, e)
		}
	}
	letters := make([]string, len(lines))
	for i, group := range stats.Group(known) {
		letters[i] = stats.Letters(group)
	}
	for i, letter := range letters {
		place(&lines[i], i+1, letter)
	}
}

// cell combines the figures of cell i.
func (r *Ranking) cell(d *data, a *model.Analysis, i int) Cell {
	suite, offered := d.names[a.Cells[i]]
	if !offered {
		suite = a.Cells[i]
	}
	wall := a.Wall.Figures[i]
	speed := wall.Inverse()
	if speed.Known() {
		speed.Log += math.Log(1e9) // bytes per ns to bytes per second
	}
	cost := func(s model.Series) Figure { return r.figure(s.Figures[i].Estimate, Cost) }
	c := Cell{
		Suite: suite, Direction: a.Direction, Basis: Predicted, Status: suite.Status(), Holdout: wall.Held, Shared: wall.Shared,
		Throughput: r.figure(speed, Throughput), Sides: Sides{cost(a.Client), cost(a.Server), cost(a.Total)}, cost: a.Cost.Figures[i].Estimate,
	}
	if speed.Known() {
		if c.Timed = Predicted; wall.Basis > 0 {
			c.Timed = Measured
		}
	}
	if a.Client.Figures[i].N > 0 || wall.N > 0 {
		c.Basis = Measured
	}
	return c
}

func cpu(d *time.Duration) float64 {
	if d == nil {
		return 0
	}
	return float64(*d)
}
