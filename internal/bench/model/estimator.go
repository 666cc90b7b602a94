package model

import (
	"math"
	"math/rand/v2"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// estimator is how figures follow from the connections' values: weights and variances are
// told once, so that samples of the bootstrap go the same way.
type estimator struct {
	cells       []alg.Suite
	obs         []observation
	classes     [][]int   // cells that are the same computation
	class       []int     // of each cell
	deviations  []float64 // between connections of a class
	within      float64   // variance of a connection's value by its slices, times their number
	weights     []float64 // of observations
	fitted      []int     // classes that the model rests on
	model       *additive
	interaction float64
}

// What is expected of variances before a run shows them, and how many degrees of freedom that
// is worth (Smyth, Statistical Applications in Genetics and Molecular Biology 3, 2004).
const (
	usualConnection  = 0.004 // between connections that moved data in slices
	usualCopy        = 0.03  // between copies
	connectionWorth  = 4
	usualInteraction = 0.005
	interactionWorth = 4
	usualSlice       = 0.1 // of one slice
)

func newEstimator(cells []alg.Suite, obs []observation) *estimator {
	e := &estimator{cells: cells, obs: obs, weights: make([]float64, len(obs))}
	e.classify()
	e.spread()
	e.interaction = usualInteraction
	for range 2 {
		e.fit()
	}
	return e
}

// name is what a cell computes: its cipher, and the primitive of its MAC. The length of a tag
// changes nothing, nor does applying it to the ciphertext.
func name(cell alg.Suite) (cipher, mac string) { return cell.Cipher, alg.Primitive(cell.MAC) }

// classify sorts cells by what they compute.
func (e *estimator) classify() {
	e.classes, e.class = nil, make([]int, len(e.cells))
	index := map[[2]string]int{}
	for i, cell := range e.cells {
		cipher, mac := name(cell)
		k, seen := index[[2]string{cipher, mac}]
		if !seen {
			k = len(e.classes)
			index[[2]string{cipher, mac}] = k
			e.classes = append(e.classes, nil)
		}
		e.classes[k], e.class[i] = append(e.classes[k], i), k
	}
}

// spread tells how much connections of one computation differ (one-way random effects, by the
// method of moments), and how much of that is their slices.
func (e *estimator) spread() {
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
	e.within = usualSlice * usualSlice
	if len(noise) > 0 {
		e.within = stats.Median(noise)
	}
	sums, counts := make([]float64, len(e.classes)), make([]float64, len(e.classes))
	usual := usualCopy
	for _, o := range e.obs {
		sums[e.class[o.cell]] += o.log
		counts[e.class[o.cell]]++
		if o.n > 0 {
			usual = usualConnection
		}
	}
	squares := make([]float64, len(e.classes))
	all, degrees := connectionWorth*usual*usual, float64(connectionWorth)
	for _, o := range e.obs {
		if k := e.class[o.cell]; counts[k] > 1 {
			off, share := o.log-sums[k]/counts[k], 1-1/counts[k]
			square := off*off - share*e.variance(o)
			squares[k], all, degrees = squares[k]+square, all+square, degrees+share
		}
	}
	pooled := math.Max(all/degrees, usual*usual/4)
	e.deviations = make([]float64, len(e.classes))
	for k := range e.deviations {
		e.deviations[k] = math.Sqrt(math.Max(pooled/4, (connectionWorth*pooled+squares[k])/(connectionWorth+math.Max(0, counts[k]-1))))
	}
	for i, o := range e.obs {
		d := e.deviations[e.class[o.cell]]
		e.weights[i] = 1 / (d*d + e.variance(o))
	}
}

// variance of a connection's value by its slices.
func (e *estimator) variance(o observation) float64 {
	if o.n == 0 {
		return 0
	}
	return e.within / float64(o.n)
}

// means are those of classes, by the observations to keep, and their variances; infinite where
// there are none.
func (e *estimator) means(values []float64, keep func(observation) bool) (logs, variances []float64) {
	logs, variances = make([]float64, len(e.classes)), make([]float64, len(e.classes))
	for i, o := range e.obs {
		if keep(o) {
			logs[e.class[o.cell]] += e.weights[i] * values[i]
			variances[e.class[o.cell]] += e.weights[i]
		}
	}
	for k, weight := range variances {
		if variances[k] = 1 / weight; weight > 0 {
			logs[k] /= weight
		}
	}
	return logs, variances
}

func all(observation) bool { return true }

func fittable(o observation) bool { return !o.holdout }

// fit fits cipher + MAC, and how far cells lie from it beyond their noise (DerSimonian and
// Laird's moments, with what is usual).
func (e *estimator) fit() {
	values := make([]float64, len(e.obs))
	for i, o := range e.obs {
		values[i] = o.log
	}
	logs, variances := e.means(values, fittable)
	var points []point
	e.fitted = nil
	for k, same := range e.classes {
		if cell := e.cells[same[0]]; cell.MAC != "" && !math.IsInf(variances[k], 1) {
			points = append(points, point{cell, logs[k], variances[k] + e.interaction*e.interaction})
			e.fitted = append(e.fitted, k)
		}
	}
	e.model = fitAdditive(points)
	beta := e.model.parameters(costsOf(points))
	squares, degrees := interactionWorth*usualInteraction*usualInteraction, float64(interactionWorth)
	free := float64(len(points)) - e.model.used()
	for k, p := range points {
		if cost, err := e.model.at(beta, p.cell); free > 0 && !math.IsInf(err, 1) {
			off, share := p.log-math.Log(cost), free/float64(len(points))
			squares, degrees = squares+off*off-share*variances[e.fitted[k]], degrees+share
		}
	}
	e.interaction = math.Sqrt(math.Max(squares/degrees, usualInteraction*usualInteraction/4))
}

func costsOf(points []point) []float64 {
	out := make([]float64, len(points))
	for k, p := range points {
		out[k] = math.Exp(p.log)
	}
	return out
}

// of are the figures of all classes. Measurement and prediction weigh by their variances, as an
// empirical Bayes estimate does (Efron and Morris, JASA 70, 1975).
func (e *estimator) of(values []float64) []Figure {
	logs, variances := e.means(values, all)
	own, _ := e.means(values, fittable)
	costs := make([]float64, len(e.fitted))
	for row, k := range e.fitted {
		costs[row] = math.Exp(own[k])
	}
	beta := e.model.parameters(costs)
	out := make([]Figure, len(e.classes))
	for k, same := range e.classes {
		f := &out[k]
		cost, err := e.model.others(beta, costs, e.cells[same[0]])
		if f.Foretold = !math.IsInf(err, 1); f.Foretold {
			f.Predicted, f.Error = math.Log(cost), math.Hypot(err, e.interaction)
		}
		measured := !math.IsInf(variances[k], 1)
		if measured {
			f.Measured, f.Own = logs[k], math.Sqrt(variances[k])
		}
		switch {
		case measured && f.Foretold:
			share := variances[k] / (variances[k] + f.Error*f.Error) // of the prediction
			f.Log = f.Measured + share*(f.Predicted-f.Measured)
			f.Err = share * e.interaction
		case measured:
			f.Log = f.Measured
		case f.Foretold:
			f.Log, f.Err = f.Predicted, e.interaction
		}
	}
	return out
}

// fill gives each cell the figure of its class.
func (e *estimator) fill(figures []Figure, values []float64) {
	counts, basis := make([]int, len(e.cells)), make([]int, len(e.classes))
	for _, o := range e.obs {
		counts[o.cell]++
		basis[e.class[o.cell]]++
	}
	for k, f := range e.of(values) {
		for _, i := range e.classes[k] {
			figures[i] = f
			figures[i].N, figures[i].Basis, figures[i].Shared = counts[i], basis[k], len(e.classes[k])
		}
	}
}

// resample are other values that the connections might have shown: of blocks of time drawn
// with replacement, the same for all, and of other connections (a block bootstrap, Künsch,
// Annals of Statistics 17, 1989, with the random effect of a connection drawn from its normal
// distribution: Davison and Hinkley, Bootstrap Methods, 3.8).
func (e *estimator) resample(random *rand.Rand, values []float64) []float64 {
	var times []int
	shared := map[string]float64{}
	out := make([]float64, len(values))
	for i, o := range e.obs {
		if times == nil && len(o.blocks) > 0 {
			times = stats.Resample(random, len(o.blocks))
		}
		moved, n := 0.0, 0.0
		for b, x := range o.blocks {
			moved, n = moved+float64(times[b])*x.moved, n+float64(times[b])*x.slices
		}
		out[i] = values[i] + e.deviations[e.class[o.cell]]*random.NormFloat64()
		if n > 0 {
			out[i] += moved / n
		}
		if _, drawn := shared[o.longer]; !drawn {
			shared[o.longer] = random.NormFloat64()
		}
		out[i] += o.moved * shared[o.longer]
	}
	return out
}
