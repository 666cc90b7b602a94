package model

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// anyKind stands for all cells.
const anyKind = "*"

// kindOf names the cells that have one ratio of wall time to CPU time: AEAD ciphers, the fastest, lose most
// by both sides waking each other up, each in its own way; all others have one.
func kindOf(cell alg.Suite) string {
	if cell.MAC == "" {
		return cell.Cipher
	}
	return ""
}

// ratios are those of all cells, as logarithms, by the observations, each taken so many times: cells of
// a kind that was not timed have that of the cells with a MAC, or of all, or 1 where nothing was.
func ratios(cells []alg.Suite, obs []observation, times []int) []float64 {
	sums, weights := map[string]float64{}, map[string]float64{}
	for i, o := range obs {
		weight := float64(times[i] * o.n)
		for _, kind := range []string{kindOf(cells[o.cell]), anyKind} {
			sums[kind] += weight * math.Exp(o.log)
			weights[kind] += weight
		}
	}
	out := make([]float64, len(cells))
	for i, cell := range cells {
		for _, kind := range []string{kindOf(cell), "", anyKind} {
			if weights[kind] > 0 {
				out[i] = math.Log(sums[kind] / weights[kind])
				break
			}
		}
	}
	return out
}

// fromCosts are wall times: the CPU time that decides, times the ratio of the kind.
func fromCosts(cells []alg.Suite, obs []observation, cost Series, between float64) Series {
	s := Series{between: between, Figures: make([]Figure, len(cells)), Degrees: cost.Degrees}
	kinds, times := map[string][]int{}, slices.Repeat([]int{1}, len(obs))
	for i, o := range obs {
		kinds[kindOf(cells[o.cell])] = append(kinds[kindOf(cells[o.cell])], i)
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
		for _, kind := range slices.Sorted(maps.Keys(kinds)) { // other connections of each
			for k, n := range stats.Resample(random, len(kinds[kind])) {
				times[kinds[kind][k]] = n
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
