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

// maxNoise is the noise floor of throughput, in percent, from which on a
// ranking by cost is better, unless that resolves much less: above it, runs
// agree on costs better than on throughput even where both resolve alike.
const maxNoise = 5.0

// rankBulk fills and orders the cells.
func (r *Ranking) rankBulk(d *data, by By) {
	var analyses []*model.Analysis
	for _, direction := range []record.Direction{record.Upload, record.Download, ""} {
		if a := d.analysis(direction); a != nil {
			analyses = append(analyses, a)
		}
	}
	if len(analyses) == 0 {
		return
	}
	r.judge(analyses)
	r.By, r.forced = r.choose(by), by == Throughput || by == Cost
	for _, a := range analyses {
		r.levelCost = math.Max(r.levelCost, a.Total.Level)
		r.levelWall = math.Max(r.levelWall, a.Wall.Level)
	}
	for _, a := range analyses {
		r.addCells(d, a)
	}
	half := len(d.drift) / 2 // a trend is twice what the halves differ by
	r.Harness.Drift = 100 * math.Expm1(2*(stats.Mean(d.drift[half:])-stats.Mean(d.drift[:half])))
}

// addResolution adds what the clock of an imported log leaves open.
func (d *data) addResolution(a *model.Analysis) {
	for i := range a.Wall.Figures {
		if err := d.coarse[record.Cell{Suite: a.Cells[i], Direction: a.Direction}]; err > 0 {
			a.Wall.Figures[i].Err = math.Hypot(a.Wall.Figures[i].Err, err)
		}
	}
}

// judge fills in what is known about the quality of the run: the worst of its
// directions, because one number has to serve both.
func (r *Ranking) judge(analyses []*model.Analysis) {
	var client []float64
	for _, a := range analyses {
		costs := a.Client
		if !a.Works {
			costs = a.Wall
		}
		client = append(client, costs.PredictionErrors()...)
		r.Model.Interaction = max(r.Model.Interaction, 100*costs.Interaction)
		if a.Works {
			r.Noise.Cost = max(r.Noise.Cost, 100*a.Cost().Noise())
		}
		r.Noise.Throughput = max(r.Noise.Throughput, 100*a.Wall.Noise())
	}
	r.Model.HoldoutCells = len(client)
	r.Model.HoldoutError, r.Model.HoldoutP95 = 100*stats.Median(client), 100*stats.Quantile(client, 0.95)
}

// choose resolves Auto: the cost where throughput cannot tell cells apart.
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

// Tie is the difference, in percent, below which the ranking tells no cells apart: what makes
// no difference to anybody, or what this run cannot tell.
func (r *Ranking) Tie() float64 {
	return max(100*stats.Margin, pick(r.By, r.Noise.Cost, r.Noise.Throughput))
}

// addCells appends the cells of one direction in their order.
func (r *Ranking) addCells(d *data, a *model.Analysis) {
	series := pick(r.By, a.Cost(), a.Wall)
	order := make([]int, len(a.Cells))
	for i := range order {
		order[i] = i
	}
	place := func(i int) float64 { // what is unknown comes last
		if f := series.Figures[i]; f.Known() {
			return f.Log
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(place(i), place(j)) })
	groups := groupsOf(series, order)
	rank := 0
	for _, i := range order {
		cell, ok := r.cell(d, a, i)
		if !ok {
			r.Missing = append(r.Missing, cell.Suite)
			continue
		}
		if rank < len(groups) && d.paired == nil { // pairs say how each compares with one, not with all others
			cell.Group = stats.Letters(groups[rank])
		}
		rank++
		cell.Rank = rank
		r.Bulk = append(r.Bulk, cell)
	}
}

// groupsOf numbers the tie groups of the known figures, which come first.
func groupsOf(series model.Series, order []int) []int {
	var estimates []stats.Estimate
	for _, i := range order {
		if f := series.Figures[i]; f.Known() {
			estimates = append(estimates, f.Estimate)
		}
	}
	return stats.Group(estimates)
}

// cell puts together what is known about cell i; ok is false if that is
// nothing.
func (r *Ranking) cell(d *data, a *model.Analysis, i int) (c Cell, ok bool) {
	suite, offered := d.names[a.Cells[i]]
	if !offered {
		suite = a.Cells[i]
	}
	c = Cell{Suite: suite, Direction: a.Direction, Basis: Predicted, Status: suite.Status()}
	c.Within = figures(a, i)
	c.Throughput = r.shown(c.Within.Throughput, Throughput)
	c.Client, c.Server = r.shown(c.Within.Client, Cost), r.shown(c.Within.Server, Cost)
	c.Shared, c.Holdout = a.Wall.Figures[i].Shared, a.Wall.Figures[i].Held
	if c.Throughput != nil {
		if c.Timed = Predicted; a.Wall.Figures[i].Basis > 0 {
			c.Timed = Measured
		}
	}
	if a.Client.Figures[i].N > 0 || a.Wall.Figures[i].N > 0 {
		c.Basis = Measured
	}
	return c, c.Throughput != nil || c.Client != nil
}

func figures(a *model.Analysis, i int) Figures {
	speed := a.Wall.Figures[i].Inverse()
	if speed.Known() {
		speed.Log += math.Log(1e9) // bytes per ns to bytes per second
	}
	return Figures{speed, a.Client.Figures[i].Estimate, a.Server.Figures[i].Estimate, a.Total.Figures[i].Estimate}
}

func cpu(d *time.Duration) float64 {
	if d == nil {
		return 0
	}
	return float64(*d)
}
