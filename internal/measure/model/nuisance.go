package model

import (
	"math"

	"sshpace/internal/base/stats"
)

// nuisance is what moved connections besides their cell and the level of the
// machine: foreign work, and which of client and server shared a core with the
// sink, which shows in how long either waited for a core. Connections that were
// disturbed are noisier too, and weigh less.
type nuisance struct {
	effects [covariates]float64 // on the logarithm, per unit of the covariate
	centre  [covariates]float64
	usual   [2][2]float64 // of both waits: constant, and per unit of speed
	ratio   float64       // deviation of crowded connections relative to clean ones
}

// covariates of an observation: crowded (0 or 1), and the shares of the time
// that client and server waited for a core, beyond what is usual for a cell as
// fast as this one.
const covariates = 3

const (
	minForEffects = 24  // connections, below which no effect is estimated
	minPerClass   = 8   // clean and crowded ones, to tell their noise apart
	maxRatio      = 4.0 // of their deviations
	effectRidge   = 4.0 // connections' worth of doubt in every effect
)

// adjustment is what the nuisance added to an observation.
func (n *nuisance) adjustment(o observation) float64 {
	sum := 0.0
	for k, x := range n.features(o) {
		sum += n.effects[k] * (x - n.centre[k])
	}
	return sum
}

// weight of an observation relative to a clean one.
func (n *nuisance) weight(o observation) float64 {
	if o.crowded && n.ratio > 1 {
		return 1 / (n.ratio * n.ratio)
	}
	return 1
}

func (n *nuisance) features(o observation) [covariates]float64 {
	out := [covariates]float64{}
	if o.crowded {
		out[0] = 1
	}
	for side := range 2 {
		out[1+side] = o.waits[side] - n.usual[side][0] - n.usual[side][1]*o.speed
	}
	return out
}

// learn estimates the effects from what the cells leave unexplained.
func (n *nuisance) learn(obs []observation, residuals []float64, deviation float64) {
	n.ratio = spreadRatio(obs, residuals)
	if len(obs) < minForEffects {
		return
	}
	n.learnUsual(obs)
	n.centre = [covariates]float64{}
	weights, total := make([]float64, len(obs)), 0.0
	for i, o := range obs {
		weights[i] = n.weight(o)
		total += weights[i]
		for k, x := range n.features(o) {
			n.centre[k] += weights[i] * x
		}
	}
	for k := range n.centre {
		n.centre[k] /= total
	}
	n.effects = n.solve(obs, residuals, weights, deviation)
}

// learnUsual fits how long a side waits in a cell of a given speed: the sink
// takes a share of the cores that grows with the rate.
func (n *nuisance) learnUsual(obs []observation) {
	for side := range 2 {
		var xs, ys []float64
		for _, o := range obs {
			if !o.crowded {
				xs, ys = append(xs, o.speed), append(ys, o.waits[side])
			}
		}
		variance := stats.Variance(xs)
		if variance == 0 {
			n.usual[side] = [2]float64{stats.Mean(ys), 0}
			continue
		}
		mx, my, slope := stats.Mean(xs), stats.Mean(ys), 0.0
		for i := range xs {
			slope += (xs[i] - mx) * (ys[i] - my) / variance / float64(len(xs)-1)
		}
		n.usual[side] = [2]float64{my - slope*mx, slope}
	}
}

// solve is a robust ridge regression of what is left, the effects so far added
// back.
func (n *nuisance) solve(obs []observation, residuals, weights []float64, deviation float64) [covariates]float64 {
	beta := n.effects
	for range reweights {
		a, b := square(covariates), make([]float64, covariates)
		for i, o := range obs {
			x := n.features(o)
			fitted, target := 0.0, residuals[i]+n.adjustment(o)
			for k := range x {
				x[k] -= n.centre[k]
				fitted += beta[k] * x[k]
			}
			weight := weights[i]
			if z := math.Abs(target-fitted) / math.Max(deviation, 1e-6); z > huberLimit {
				weight *= huberLimit / z
			}
			for p := range x {
				b[p] += weight * x[p] * target
				for q := range x {
					a[p][q] += weight * x[p] * x[q]
				}
			}
		}
		for k := range a {
			a[k][k] += effectRidge * 0.02
		}
		copy(beta[:], backSolve(cholesky(a), b))
	}
	return beta
}

// spreadRatio compares the noise of crowded and clean connections.
func spreadRatio(obs []observation, residuals []float64) float64 {
	var clean, crowded []float64
	for i, o := range obs {
		if o.crowded {
			crowded = append(crowded, residuals[i])
		} else {
			clean = append(clean, residuals[i])
		}
	}
	if len(clean) < minPerClass || len(crowded) == 0 {
		return 1
	}
	if len(crowded) < minPerClass {
		return 2 // too few to tell: half as precise
	}
	quiet := stats.Scale(clean, stats.Median(clean))
	if quiet <= 0 {
		return 1
	}
	return math.Max(1, math.Min(maxRatio, stats.Scale(crowded, stats.Median(crowded))/quiet))
}
