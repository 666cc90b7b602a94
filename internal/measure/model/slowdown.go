package model

import (
	"maps"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// What other guests of the machine do slows some ciphers and MACs twice as much as others,
// by keeping the execution units busy that these need, and it comes and goes within
// milliseconds. So the slices of one run show it: their usual cost against that of the best
// of them. A run slowed by 3 % was 9.4 % apart from five that were slowed by 45 to 51 %, in cells
// after the common shift (median), and 2.3 % without what both showed of it.
const (
	bestPart = 0.05 // of slices, whose mean stands for the machine's best moments
	// enoughSlices to tell the best of one kind of computation from the others.
	enoughSlices = 160
	// parts of the slices, every eighth, whose differences tell the error.
	slowdownParts = 8
)

// execution names the kind of computation that a cell is: ciphers with keys of another
// length, and MACs under other names, keep the same units of a processor busy.
func execution(cell record.Cell) string {
	family := strings.NewReplacer("128", "", "192", "", "256", "").Replace(cell.Suite.Cipher)
	return family + " " + alg.Primitive(cell.Suite.MAC) + " " + string(cell.Direction)
}

// slowdowns is by how much other guests slowed each connection, as a logarithm: its kind of
// computation, or all together where there are few slices of it. N counts slices; it is 0
// where there are too few of all.
func slowdowns(connections []*connection, samples []sample) []stats.Estimate {
	kinds := map[string][]float64{}
	for i, s := range samples {
		kind := execution(connections[i].trial.Cell())
		for _, x := range s.logs {
			kinds[kind] = append(kinds[kind], x-s.centre)
		}
	}
	var all []float64
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		all = append(all, kinds[kind]...)
	}
	out := make([]stats.Estimate, len(samples))
	memo := map[string]stats.Estimate{}
	for i := range out {
		kind := execution(connections[i].trial.Cell())
		e, known := memo[kind]
		if !known {
			if e = slowdown(kinds[kind]); e.N == 0 {
				e = slowdown(all)
			}
			memo[kind] = e
		}
		out[i] = e
	}
	return out
}

// slowdown is the distance of the location, which is 0, from the best residuals.
func slowdown(residuals []float64) stats.Estimate {
	if len(residuals) < enoughSlices {
		return stats.Estimate{}
	}
	parts := make([][]float64, slowdownParts)
	for i, x := range residuals {
		parts[i%slowdownParts] = append(parts[i%slowdownParts], x)
	}
	var each []float64
	for _, part := range parts {
		each = append(each, best(part))
	}
	return stats.Estimate{
		Log: -best(slices.Clone(residuals)), N: len(residuals),
		Err: math.Sqrt(stats.Variance(each) / slowdownParts),
	}
}

// best is the mean of the lowest residuals, which it sorts.
func best(residuals []float64) float64 {
	slices.Sort(residuals)
	return stats.Mean(residuals[:max(1, int(bestPart*float64(len(residuals))))])
}

// feel notes how much more the slices of each connection feel other guests than others do,
// as far as it is no chance (James and Stein 1961).
func feel(samples []sample, slowed []stats.Estimate) {
	var logs, errs []float64
	for _, e := range slowed {
		if e.N > 0 {
			logs, errs = append(logs, e.Log), append(errs, e.Err)
		}
	}
	usual, share := 0.0, 0.0
	if len(logs) > 1 {
		usual = stats.Mean(logs)
		if doubt, variance := stats.RMS(errs), stats.Variance(logs); variance > doubt*doubt {
			share = 1 - doubt*doubt/variance
		}
	}
	for i, e := range slowed {
		if e.N > 0 && usual > 0 {
			samples[i].more = share * (e.Log/usual - 1)
		}
	}
}
