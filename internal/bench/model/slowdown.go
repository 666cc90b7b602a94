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
// milliseconds. So cells are compared by their calm slices, and what is left of it in these
// shows: their cost against that of the best of all.
const (
	bestPart = 0.1 // of slices, whose mean stands for the machine's best moments
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

// calm locates samples by their calm slices, raised to the usual level of all of them: what
// other guests do beyond that differs from run to run, and from cell to cell. It returns by how
// much they slowed each connection.
func calm(connections []*connection, samples []sample) []stats.Estimate {
	var usual []float64
	for i := range samples {
		if s := &samples[i]; len(s.logs) > 0 {
			before := s.Mean
			s.locate(0, calmQuantile)
			usual = append(usual, before-s.Mean)
		}
	}
	slowed, level := slowdowns(connections, samples), stats.Median(usual)
	for i := range samples {
		samples[i].Mean += level
		if slowed[i].N > 0 {
			slowed[i].Log += level
		}
	}
	return slowed
}

// slowdowns is by how much other guests slowed each connection, as a logarithm: its kind of
// computation, or all together where there are few slices of it. N counts slices; it is 0
// where there are too few of all.
func slowdowns(connections []*connection, samples []sample) []stats.Estimate {
	kinds := map[string][]float64{}
	for i, s := range samples {
		kind := execution(connections[i].trial.Cell())
		for _, x := range s.logs {
			kinds[kind] = append(kinds[kind], x-s.Mean)
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
