package model

import (
	"math"
	"math/rand/v2"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// estimator computes figures from the connections' values. Its weights and variances are fixed
// once, so that samples of the bootstrap use the same ones.
type estimator struct {
	cells       []alg.Suite
	obs         []observation
	classes     [][]int   // cells that are the same computation
	class       []int     // of each cell
	deviation   float64   // between connections of a class
	weights     []float64 // of observations
	interaction float64   // standard deviation of cells from cipher + MAC
}

// The expected deviations before a run shows them, and the degrees of freedom of this guess.
const (
	usualConnection = 0.004 // between connections that moved data in slices
	usualCopy       = 0.03  // between copies
	connectionWorth = 4
	usualCell       = 0.005 // of cells from cipher + MAC, at least
	usualSlice      = 0.1   // of one slice
)

func newEstimator(cells []alg.Suite, obs []observation) *estimator {
	e := &estimator{cells: cells, obs: obs, weights: make([]float64, len(obs)), interaction: usualCell}
	e.classify()
	e.spread()
	for range 4 { // until cells differ from the prediction of others by as much as they may (DerSimonian and Laird's moments, 1986)
		var beyond []float64
		for _, f := range e.of(e.values()) {
			if f.Others.Known() {
				beyond = append(beyond, f.Others.Log*f.Others.Log-f.Others.Err*f.Others.Err)
			}
		}
		e.interaction = math.Sqrt(math.Max(usualCell*usualCell, e.interaction*e.interaction+stats.Mean(beyond)))
	}
	return e
}

// classify sorts cells by their computation.
func (e *estimator) classify() {
	index := map[[2]string]int{}
	for i, cell := range e.cells {
		k, seen := index[columnsOf(cell)]
		if !seen {
			k = len(e.classes)
			index[columnsOf(cell)] = k
			e.classes = append(e.classes, nil)
		}
		e.classes[k], e.class = append(e.classes[k], i), append(e.class, k)
	}
}

// spread estimates how much connections of one computation differ beyond their slices (one-way
// random effects, by the method of moments), and weighs them by that.
func (e *estimator) spread() {
	slices := e.ofSlices()
	groups, usual := make([][]float64, len(e.classes)), usualCopy
	for _, o := range e.obs {
		k := e.class[o.cell]
		groups[k] = append(groups[k], o.Log)
		if o.N > 0 {
			usual = usualConnection
		}
	}
	own, degrees := stats.PooledDeviation(groups)
	between := math.Sqrt(math.Max(0, own*own-stats.Mean(slices)))
	e.deviation, _ = stats.Shrink(between, degrees, usual, connectionWorth)
	for i, variance := range slices {
		e.weights[i] = 1 / (e.deviation*e.deviation + variance)
	}
}

// ofSlices returns the variance of each connection's value by its slices: as blocks of time show
// it, the same for a slice of all.
func (e *estimator) ofSlices() []float64 {
	var noise []float64
	for _, o := range e.obs {
		squares, n := 0.0, 0.0
		for _, b := range o.blocks {
			squares, n = squares+b.moved*b.moved, n+b.slices
		}
		if n >= fewSlices {
			noise = append(noise, squares/n)
		}
	}
	slice := usualSlice * usualSlice
	if len(noise) > 0 {
		slice = stats.Median(noise)
	}
	out := make([]float64, len(e.obs))
	for i, o := range e.obs {
		if o.N > 0 {
			out[i] = slice / float64(o.N)
		}
	}
	return out
}

// means returns the means of classes, over the observations to keep, with their variances; nil
// where there are none.
func (e *estimator) means(values []float64, keep func(observation) bool) []*point {
	out := make([]*point, len(e.classes))
	for i, o := range e.obs {
		k := e.class[o.cell]
		if !keep(o) {
			continue
		}
		if out[k] == nil {
			out[k] = &point{cell: e.cells[e.classes[k][0]]}
		}
		out[k].log += e.weights[i] * values[i]
		out[k].variance += e.weights[i]
	}
	for _, p := range out {
		if p != nil {
			p.log, p.variance = p.log/p.variance, 1/p.variance
		}
	}
	return out
}

// model returns cipher + MAC fitted to the allowed values, and the points of classes that it rests
// on.
func (e *estimator) model(values []float64) (*additive, []*point) {
	var fitted []point
	own := e.means(values, func(o observation) bool { return !o.holdout })
	for k, p := range own {
		if p == nil || p.cell.MAC == "" {
			own[k] = nil
			continue
		}
		p.variance += e.interaction * e.interaction
		fitted = append(fitted, *p)
	}
	return fitAdditive(fitted), own
}

// values returns the observed logarithms.
func (e *estimator) values() []float64 {
	out := make([]float64, len(e.obs))
	for i, o := range e.obs {
		out[i] = o.Log
	}
	return out
}

// of returns the figures of all cells. Measurement and prediction are weighed by their variances,
// as in an empirical Bayes estimate (Efron and Morris, JASA 70, 1975).
func (e *estimator) of(values []float64) []Effect {
	m, own := e.model(values)
	out := make([]Effect, len(e.cells))
	for k, p := range e.means(values, func(observation) bool { return true }) {
		f := Effect{Shared: len(e.classes[k])}
		log, err := m.others(e.cells[e.classes[k][0]], own[k])
		err = math.Hypot(err, e.interaction)
		switch foretold := !math.IsInf(err, 1); {
		case p != nil && foretold:
			share := p.variance / (p.variance + err*err) // of the prediction
			f.Log, f.Err = p.log+share*(log-p.log), share*e.interaction
			f.Others = stats.Estimate{Log: p.log - log, Err: math.Hypot(err, math.Sqrt(p.variance)), N: 1}
		case p != nil:
			f.Log = p.log
		case foretold:
			f.Log, f.Err = log, e.interaction
		default:
			continue
		}
		for _, i := range e.classes[k] {
			out[i] = f
		}
	}
	return out
}

// figures returns the figures of the values, with the number of connections of each.
func (e *estimator) figures() []Effect {
	out := e.of(e.values())
	for _, o := range e.obs {
		out[o.cell].N++
		out[o.cell].Held = out[o.cell].Held || o.holdout
		for _, i := range e.classes[e.class[o.cell]] {
			out[i].Basis++
		}
	}
	return out
}

// resample returns other values that the connections might have shown: of blocks of time drawn with
// replacement, the same for all, and of other connections (a block bootstrap, Künsch, Annals of
// Statistics 17, 1989, with the random effect of a connection drawn from its normal distribution:
// Davison and Hinkley, Bootstrap Methods, 3.8).
func (e *estimator) resample(random *rand.Rand) []float64 {
	var times []int
	out, longer := e.values(), random.NormFloat64() // the correction for long transfers has one error for all
	for i, o := range e.obs {
		if times == nil && len(o.blocks) > 0 {
			times = stats.Resample(random, len(o.blocks))
		}
		moved, n := 0.0, 0.0
		for b, x := range o.blocks {
			moved, n = moved+float64(times[b])*x.moved, n+float64(times[b])*x.slices
		}
		out[i] += e.deviation * random.NormFloat64()
		if n > 0 {
			out[i] += moved / n
		}
		out[i] += o.moved * longer
	}
	return out
}
