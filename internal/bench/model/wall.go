package model

import (
	"math"
	"math/rand/v2"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// aead is 1 of an AEAD cipher, else 0: the fastest ciphers lose most by both sides waking each other up, so
// that they have a ratio of wall time to CPU time of their own.
func aead(cell alg.Suite) int { return one(cell.MAC == "") }

// ratios are those of all cells, as logarithms, by the observations, each taken so many times: cells of
// a kind that was not timed have that of the other one, or 1 where nothing was.
func ratios(cells []alg.Suite, obs []observation, times []int) []float64 {
	var sums, weights [2]float64
	for i, o := range obs {
		kind, weight := aead(cells[o.cell]), float64(times[i]*o.N)
		sums[kind] += weight * math.Exp(o.Log)
		weights[kind] += weight
	}
	out := make([]float64, len(cells))
	for i, cell := range cells {
		kind := aead(cell)
		if weights[kind] == 0 {
			kind = 1 - kind
		}
		if weights[kind] > 0 {
			out[i] = math.Log(sums[kind] / weights[kind])
		}
	}
	return out
}

// betweenRuns is the standard deviation of a ratio from one run to the next, which nothing within a run
// shows: 1.2 % of nine quiet runs of one guest, nothing of seven of another.
const betweenRuns = 0.009

// fromCosts are wall times: the CPU time that decides, times the ratio of the kind.
func fromCosts(cells []alg.Suite, obs []observation, cost Series) Series {
	s := Series{between: math.Hypot(betweenRuns, cost.between), Figures: make([]Figure, len(cells)), Degrees: cost.Degrees}
	var kinds [2][]int
	times := slices.Repeat([]int{1}, len(obs))
	for i, o := range obs {
		kinds[aead(cells[o.cell])] = append(kinds[aead(cells[o.cell])], i)
		s.Figures[o.cell].N++
	}
	for i, ratio := range ratios(cells, obs, times) {
		f, n := &s.Figures[i], s.Figures[i].N
		if *f = cost.Figures[i]; f.Shared > 0 {
			f.Log, f.Err, f.N, f.Basis = f.Log+ratio, 0, n, n
		}
	}
	r := 0
	s.draws = stats.Bootstrap(len(cost.draws), func(random *rand.Rand) []float64 {
		for _, kind := range kinds { // other connections of each
			for k, n := range stats.Resample(random, len(kind)) {
				times[kind[k]] = n
			}
		}
		logs := ratios(cells, obs, times)
		for i := range logs {
			logs[i] += cost.draws[r][i]
		}
		r++
		return logs
	})
	s.errors()
	return s
}
