package model

import (
	"math"

	"sshpace/internal/base/stats"
)

// variances splits what makes connections differ: the noise of a connection,
// known from cells that were measured more than once, and the deviation of a
// cell from its prediction, known from the residuals of all. With one connection
// in most cells the two are hard to tell apart, so both are posterior means
// over a grid, under weak priors, instead of a difference of two uncertain
// figures that is often below zero.
type variances struct {
	within, degrees float64 // sum of squares within cells, and its degrees of freedom
	groups          []residuals
}

// residuals are cells with the same number of connections.
type residuals struct {
	n, count    float64
	squares     float64 // sum of the squared residuals
	uncertainty float64 // mean variance of the predictions themselves
}

const (
	gridDeviations   = 28
	gridInteractions = 16
	gridStep         = 1.25
	gridStart        = 0.002 // relative; 0.2 % to 80 % and 0.2 % to 6 %
	// priorInteraction is the scale of a half-Cauchy prior (Gelman, Bayesian
	// Analysis 1, 2006): OpenSSH's ciphers were seen 1.4 % off the additive model.
	priorInteraction = 0.005
)

// estimate returns the deviation between connections and that of cells.
func (v variances) estimate() (deviation, interaction float64) {
	var logs [gridDeviations][gridInteractions]float64
	best := math.Inf(-1)
	for i := range logs {
		for k := range logs[i] {
			logs[i][k] = v.likelihood(gridAt(i), gridAt(k))
			best = math.Max(best, logs[i][k])
		}
	}
	var weight, noise, own float64
	for i := range logs {
		for k := range logs[i] {
			w := math.Exp(logs[i][k] - best)
			weight += w
			noise += w * gridAt(i) * gridAt(i)
			own += w * gridAt(k) * gridAt(k)
		}
	}
	return math.Sqrt(noise / weight), math.Sqrt(own / weight)
}

func gridAt(i int) float64 { return gridStart * math.Pow(gridStep, float64(i)) }

// likelihood is the logarithm of the posterior density, up to a constant.
func (v variances) likelihood(deviation, interaction float64) float64 {
	noise, own := deviation*deviation, interaction*interaction
	degrees := v.degrees + priorDegrees
	squares := v.within + priorDegrees*priorDeviation*priorDeviation
	log := -degrees*math.Log(deviation) - squares/(2*noise)
	for _, g := range v.groups {
		variance := noise/g.n + own + g.uncertainty
		log -= (g.count*math.Log(variance) + g.squares/variance) / 2
	}
	tail := interaction / priorInteraction
	return log - math.Log1p(tail*tail) + math.Log(interaction) // the grid is logarithmic
}

// winsorised limits xs to four robust standard deviations.
func winsorised(xs []float64) []float64 {
	scale := stats.Scale(xs, 0)
	if scale == 0 {
		return xs
	}
	out := make([]float64, len(xs))
	for i, x := range xs {
		out[i] = math.Max(-4*scale, math.Min(4*scale, x))
	}
	return out
}
