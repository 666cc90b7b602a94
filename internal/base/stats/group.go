package stats

import "math"

// Group splits estimates that are sorted by value into runs of equals, and returns the number
// of each one's group, from 0. A group is split while its ends are told apart, by the rule of
// all verdicts, and where the gap between neighbors is widest in their errors (single linkage:
// Gower and Ross, Applied Statistics 18, 1969). No cut is between two that are closer than
// their error, nor where others, the same things under other conditions, come in another
// order; nil for none.
func Group(sorted, others []Estimate) []int {
	groups, holds, least := make([]int, len(sorted)), inOrder(others, len(sorted), exceeds), boundary(len(sorted))
	next := 0
	var split func(from, to int)
	split = func(from, to int) {
		at, widest := 0, least
		for cut := from + 1; cut < to; cut++ {
			if gap := gapOf(sorted[cut-1], sorted[cut]); holds[cut] && gap >= widest {
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

// gapOf is by how many standard errors one estimate is more than another. An error of zero
// counts as tiny, so that exact values are told apart.
func gapOf(a, b Estimate) float64 { return (b.Log - a.Log) / math.Max(math.Hypot(a.Err, b.Err), 1e-9) }

// boundary is by how many standard errors two neighbors among n must differ for a cut between
// them: of two that are closer, the next run may find the order reversed, and tell them
// apart as well. At least 1.5, and so many that by chance no more than three pairs of neighbors in
// two runs are as far apart: 2.2 among 115 cells.
func boundary(n int) float64 {
	const least, perRun = 1.5, 1.5
	if n < 10 {
		return least
	}
	return math.Max(least, math.Sqrt2*math.Erfinv(1-2*perRun/float64(n-1)))
}

// inOrder tells where a cut leaves no estimate before it that is more than one behind it, by more
// than their error. Each estimate forbids the cuts up to the last one that it is more than, so a
// running maximum of those is all that there is to know.
func inOrder(xs []Estimate, n int, exceeds func(a, b Estimate) bool) []bool {
	holds, farthest := make([]bool, n), 0
	for cut := range holds {
		if cut > 0 && cut <= len(xs) {
			farthest = lastBelow(xs, cut-1, farthest, exceeds)
		}
		holds[cut] = cut == 0 || farthest < cut
	}
	return holds
}

// lastBelow is the last estimate behind from, and behind known, that from exceeds, or else known.
func lastBelow(xs []Estimate, from, known int, exceeds func(a, b Estimate) bool) int {
	for k := len(xs) - 1; k > max(from, known); k-- {
		if exceeds(xs[from], xs[k]) {
			return k
		}
	}
	return known
}

// exceeds tells whether an estimate is more than another by more than their error.
func exceeds(a, b Estimate) bool { return a.Log-b.Log > math.Hypot(a.Err, b.Err) }

// Letters names groups A, B, ..., Z, AA, AB, ...
func Letters(group int) string {
	name := ""
	for n := group; n >= 0; n = n/26 - 1 {
		name = string(rune('A'+n%26)) + name
	}
	return name
}
