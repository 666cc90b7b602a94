package model

import (
	"math"

	"sshpace/internal/base/stats"
)

// variances splits what makes connections differ beyond the noise of their
// slices: an effect of the connection, known from cells that have more than one,
// and the deviation of a cell from its prediction, known from the residuals of
// all. With one connection in most cells the two are hard to tell apart, so both are
// posterior means over a grid, under weak priors, instead of a difference of two
// uncertain figures that is often below zero.
type variances struct {
	prior     prior
	within    []deviation
	residuals []residual
}

// deviation of a connection from the mean of its cell: share is what the mean
// left of its variance.
type deviation struct{ off, variance, share float64 }

// residual of a cell from its prediction: share is what the fit left of its
// variance.
type residual struct {
	off, share  float64
	n, within   float64 // connections, and their mean variance by slices
	uncertainty float64 // variance of the prediction itself
}

// prior is what connections are taken to differ by before any cell had two of
// them, and the degrees of freedom that this guess is worth.
type prior struct{ deviation, degrees float64 }

// Connections of one sitting differ by a percent at most; transfers by
// themselves by what happened to the machine meanwhile.
var (
	priorSlices   = prior{0.004, 2}
	priorTransfer = prior{0.03, 4}
)

func priorOf(obs []observation) prior {
	for _, o := range obs {
		if o.variance == 0 {
			return priorTransfer
		}
	}
	return priorSlices
}

const (
	gridDeviations   = 33
	gridInteractions = 22
	gridStep         = 1.25
	gridStart        = 0.0006 // relative; 0.06 % to 75 % and 0.06 % to 6 %
	// priorInteraction is the scale of a half-Cauchy prior (Gelman, Bayesian
	// Analysis 1, 2006): OpenSSH's ciphers were seen 1.4 % off the additive model.
	priorInteraction = 0.005
)

// estimate returns the deviation between connections and that of cells.
func (v variances) estimate() (deviation, interaction float64) {
	var logs [gridDeviations][gridInteractions]float64
	best := math.Inf(-1)
	for i := range logs {
		between := v.between(gridAt(i))
		for k := range logs[i] {
			logs[i][k] = between + v.cells(gridAt(i), gridAt(k))
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

// between is the logarithm of the posterior density of the deviation, by
// connections of the same cell, up to a constant.
func (v variances) between(deviation float64) float64 {
	noise, p := deviation*deviation, v.prior
	log := -p.degrees*math.Log(deviation) - p.degrees*p.deviation*p.deviation/(2*noise)
	for _, d := range v.within {
		variance := noise + d.variance
		log -= (d.share*math.Log(variance) + d.off*d.off/variance) / 2
	}
	return log
}

// cells is the same of both, by the residuals of cells.
func (v variances) cells(deviation, interaction float64) float64 {
	noise, own := deviation*deviation, interaction*interaction
	log := 0.0
	for _, r := range v.residuals {
		variance := (noise+r.within)/r.n + own + r.uncertainty
		log -= (r.share*math.Log(variance) + r.off*r.off/variance) / 2
	}
	tail := interaction / priorInteraction
	return log - math.Log1p(tail*tail) + math.Log(interaction) // the grid is logarithmic
}

// sliceDegrees is what errors by slices count for: they are pooled over
// thousands.
const sliceDegrees = 200

// degrees of freedom of the error of a connection that has an effect of its
// own and an error by its slices.
func (v variances) degrees(deviation float64) float64 {
	own, slices := v.prior.degrees, 0.0
	for _, d := range v.within {
		own += d.share
		slices += d.variance / float64(len(v.within))
	}
	for _, r := range v.residuals {
		own += r.share / 2 // they tell noise and interaction only together
		if len(v.within) == 0 {
			slices += r.within / float64(len(v.residuals))
		}
	}
	e := stats.Estimate{Err: deviation, DF: own}.Blur(math.Sqrt(slices), sliceDegrees)
	return e.DF
}

// wild is how many robust standard deviations count as too many.
const wild = 4

// winsorise limits deviations to what is not wild.
func winsorise(ds []deviation) {
	offs := make([]float64, len(ds))
	for i, d := range ds {
		offs[i] = d.off
	}
	if limit := wild * stats.Scale(offs, 0); limit > 0 {
		for i := range ds {
			ds[i].off = math.Max(-limit, math.Min(limit, ds[i].off))
		}
	}
}

func winsoriseResiduals(rs []residual) {
	offs := make([]float64, len(rs))
	for i, r := range rs {
		offs[i] = r.off
	}
	if limit := wild * stats.Scale(offs, 0); limit > 0 {
		for i := range rs {
			rs[i].off = math.Max(-limit, math.Min(limit, rs[i].off))
		}
	}
}
