package model

import (
	"math"
	"slices"

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
// variance. Cells that are about equally well known stand together, so that the grid
// is quickly gone through.
type residual struct {
	squares     float64 // of the residuals
	count       float64 // of cells
	share       float64
	n, within   float64 // connections of each, and their mean variance by slices
	uncertainty float64 // variance of the prediction itself
}

// prior is what connections are taken to differ by before any cell had two of
// them, and the degrees of freedom that this guess is worth.
type prior struct{ deviation, degrees float64 }

// Connections of one sitting differ by a percent at most in cost, and in wall time by
// several, which are others in the next run: how well both sides work side by side
// is luck to some degree. Copies differ by what happened to the
// machine meanwhile.
var (
	priorSlices = prior{0.004, 2}
	priorWall   = prior{0.05, 8}
	priorCopy   = prior{0.03, 4}
)

// priorOf is the prior of wall times, or of costs.
func priorOf(obs []observation, ofWall bool) prior {
	switch {
	case slices.ContainsFunc(obs, func(o observation) bool { return o.variance == 0 }):
		return priorCopy
	case ofWall:
		return priorWall
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

// Connections of a cell that tell how much these differ, and how many of them the usual
// deviation counts for besides.
const (
	manyConnections  = 4
	usualConnections = 4
)

// moderated is the deviation between the connections of one cell, drawn to the usual one as
// far as they are few (Smyth, as in pool).
func moderated(usual float64, connections []deviation) float64 {
	squares, degrees := 0.0, 0.0
	for _, d := range connections {
		squares += d.off*d.off - d.share*d.variance
		degrees += d.share
	}
	return math.Sqrt((usualConnections*usual*usual + math.Max(0, squares)) / (usualConnections + degrees))
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
		log -= (r.count*r.share*math.Log(variance) + r.squares/variance) / 2
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
	cells, typical := 0.0, 0.0
	for _, d := range v.within {
		own += d.share
		slices += d.variance / float64(len(v.within))
	}
	for _, r := range v.residuals {
		own += r.count * r.share / 2 // they tell noise and interaction only together
		cells += r.count
		typical += r.count * r.within
	}
	if len(v.within) == 0 && cells > 0 {
		slices = typical / cells
	}
	e := stats.Estimate{Err: deviation, DF: own}.WithError(math.Sqrt(slices), sliceDegrees)
	return e.DF
}

// wild is how many robust standard deviations count as too many.
const wild = 4

// winsorised limits deviations to what is not wild.
func winsorised(offs []float64) []float64 {
	limit := wild * stats.Scale(offs, 0)
	if limit == 0 {
		return offs
	}
	out := make([]float64, len(offs))
	for i, x := range offs {
		out[i] = math.Max(-limit, math.Min(limit, x))
	}
	return out
}
