package stats

import "math"

// Group splits estimates that are sorted by value into runs of equals, and returns the group number
// of each, from 0. A group is split while its ends differ significantly, by the rule of all
// verdicts, at the gap between neighbors that is widest relative to their errors (single linkage:
// Gower and Ross, Applied Statistics 18, 1969). Neighbors that are closer than their error are
// never separated.
func Group(sorted []Estimate) []int {
	groups, least := make([]int, len(sorted)), boundary(len(sorted))
	next := 0
	var split func(from, to int)
	split = func(from, to int) {
		at, widest := 0, least
		for cut := from + 1; cut < to; cut++ {
			if gap := gapOf(sorted[cut-1], sorted[cut]); gap >= widest {
				at, widest = cut, gap
			}
		}
		if at > 0 && sorted[to-1].Over(sorted[from]).Interval().Verdict() == Better {
			split(from, at)
			split(at, to)
			return
		}
		for i := from; i < to; i++ {
			groups[i] = next
		}
		next++
	}
	if len(sorted) > 0 {
		split(0, len(sorted))
	}
	return groups
}

// gapOf returns the difference of two estimates in standard errors. An error of zero counts as
// tiny, so that exact values differ.
func gapOf(a, b Estimate) float64 { return (b.Log - a.Log) / math.Max(math.Hypot(a.Err, b.Err), 1e-9) }

// boundary returns the standard errors by which two neighbors among n must differ to be separated:
// closer ones may be found in reverse order by the next run, and separated as well. It is at least
// 1.5, and large enough that by chance no more than three pairs of neighbors in two runs are that
// far apart: 2.2 among 115 cells.
func boundary(n int) float64 {
	const least, perRun = 1.5, 1.5
	if n < 10 {
		return least
	}
	return math.Max(least, math.Sqrt2*math.Erfinv(1-2*perRun/float64(n-1)))
}

// Letters names groups A, B, ..., Z, AA, AB, ...
func Letters(group int) string {
	name := ""
	for n := group; n >= 0; n = n/26 - 1 {
		name = string(rune('A'+n%26)) + name
	}
	return name
}
