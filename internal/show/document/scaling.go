package document

import (
	"fmt"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
)

// scaling says up to how many parallel connections carry more, for each direction, cipher and path
// that was measured with several.
func scaling(results []compare.MethodResult) (lines []string) {
	type kind struct {
		direction record.Direction
		suite     alg.Suite
		path      record.Path
	}
	var kinds []kind
	rates := map[kind]map[int]compare.MethodResult{}
	for _, r := range results {
		if r.Rate.N == 0 || r.Mode != record.ModePipe && r.Mode != record.ModeStreams || r.Client != "" {
			continue
		}
		k := kind{r.Direction, r.Suite, r.Path}
		if rates[k] == nil {
			rates[k], kinds = map[int]compare.MethodResult{}, append(kinds, k)
		}
		rates[k][max(1, r.Streams)] = r
	}
	for _, k := range kinds {
		if line := scalingOf(rates[k]); line != "" {
			lines = append(lines, fmt.Sprintf("Connections at once (%s %s%s): %s", k.direction, Short(k.suite.Cipher), pathText(k.path), line))
		}
	}
	return lines
}

// scalingOf says up to how many connections the rates, by their number, grow.
func scalingOf(rates map[int]compare.MethodResult) string {
	var counts []int
	for n := range rates {
		counts = append(counts, n)
	}
	if slices.Sort(counts); len(counts) < 2 {
		return ""
	}
	enough := counts[0]
	doubtful := false
	var figures []string
	for _, n := range counts {
		figures = append(figures, fmt.Sprintf("%d: %s", n, unit.Digits(rates[n].Rate.Value/1e6)))
		switch rates[n].Against(rates[enough]) {
		case stats.Better:
			enough, doubtful = n, false
		case stats.NotEnough:
			doubtful = n != enough
		}
	}
	verdict := fmt.Sprintf("more than %s are no faster", unit.Count(enough, "connection"))
	if enough == 1 {
		verdict = "more than one are no faster"
	}
	if doubtful {
		verdict = fmt.Sprintf("not enough data to say whether more than %d carry more; use more --rounds", enough)
	} else if enough == counts[len(counts)-1] {
		verdict = fmt.Sprintf("faster up to %s, the most that were tried", unit.Count(enough, "connection"))
	}
	return strings.Join(figures, ", ") + " MB/s; " + verdict
}
