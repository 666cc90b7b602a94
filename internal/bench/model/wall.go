package model

import (
	"math"
	"math/rand/v2"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// aead is 1 for an AEAD cipher, otherwise 0: the fastest ciphers lose most when both sides wake
// each other up, so that they have their own ratio of wall time to CPU time.
func aead(cell alg.Suite) int { return one(cell.MAC == "") }

// The variation of the ratio of one long slice before a run shows it; the guess counts as a few of
// them.
const (
	usualRatio = 0.1
	ratioWorth = 4
)

// ratios returns the mean ones of AEAD ciphers and of all others, with their standard errors by how
// much the connections of either differ: a kind that was not timed has that of the other one, or 1
// where nothing was.
func ratios(cells []alg.Suite, obs []observation) (kinds [2]stats.Estimate) {
	var sums [2]float64
	for _, o := range obs {
		kind := aead(cells[o.cell])
		sums[kind] += float64(o.N) * math.Exp(o.Log)
		kinds[kind].N += o.N
	}
	for kind := range kinds {
		if kinds[kind].N > 0 {
			kinds[kind].Log = math.Log(sums[kind] / float64(kinds[kind].N))
		}
	}
	off := make([][]float64, len(kinds)) // as those of one slice
	for _, o := range obs {
		kind := aead(cells[o.cell])
		off[kind] = append(off[kind], math.Sqrt(float64(o.N))*(o.Log-kinds[kind].Log))
	}
	own, degrees := stats.PooledDeviation(off)
	deviation, _ := stats.Shrink(own, degrees, usualRatio, ratioWorth)
	for kind := range kinds {
		if e := &kinds[kind]; e.N > 0 {
			e.Err = deviation / math.Sqrt(float64(e.N))
		} else {
			*e = kinds[1-kind]
		}
	}
	return kinds
}

// betweenRuns is the standard deviation of a ratio from one run to the next, which a single run
// cannot show: 0.7 % of five quiet runs of one guest, 1.2 % of nine of another, nothing of seven of
// a third.
const betweenRuns = 0.007

// fromCosts returns wall times: the CPU time that decides, times the ratio of the kind.
func fromCosts(cells []alg.Suite, obs []observation, cost Series) Series {
	crowded := 2 * math.Max(0, cost.between-betweenBusy) // no core is left to work side by side: the scheduler decides
	s := Series{between: math.Hypot(betweenRuns, cost.between+crowded), Figures: make([]Effect, len(cells)), Degrees: cost.Degrees}
	for _, o := range obs {
		s.Figures[o.cell].N++
	}
	kinds := ratios(cells, obs)
	for i, cell := range cells {
		f, n := &s.Figures[i], s.Figures[i].N
		if *f = cost.Figures[i]; f.Shared > 0 {
			f.Log, f.Err, f.N, f.Basis = f.Log+kinds[aead(cell)].Log, 0, n, n
		}
	}
	r := 0
	s.draws = stats.Bootstrap(len(cost.draws), func(random *rand.Rand) []float64 {
		var logs [2]float64
		for kind, e := range kinds { // other connections of each
			logs[kind] = e.Log + e.Err*random.NormFloat64()
		}
		draw := slices.Clone(cost.draws[r])
		for i, cell := range cells {
			draw[i] += logs[aead(cell)]
		}
		r++
		return draw
	})
	s.errors()
	return s
}
