package stats

import (
	"math"

	moremath "github.com/aclements/go-moremath/stats"
)

// Group splits estimates that are sorted by value into runs of equals, and
// returns the number of each one's group, from 0. It is the clustering of Scott
// and Knott (Biometrics 30, 1974): split where the groups differ most, go on
// inside while the split is significant at 5 %. Means weigh by their precision.
// As in the effect-size-aware variant (Tantithamthavorn et al., IEEE TSE 45,
// 2019), groups whose means are closer than minimum stay one, unless that leaves a group
// whose ends are more than twice as far apart. No cut is between two that are closer than
// their error, nor where others, the same things under other conditions, come in another
// order; nil for none.
func Group(sorted, others []Estimate, minimum float64) []int {
	groups, holds, least := make([]int, len(sorted)), inOrder(others, len(sorted), exceeds), boundary(len(sorted))
	next := 0
	var split func(from, to int)
	split = func(from, to int) {
		at, distance, significant := bestSplit(sorted[from:to], holds[from:to], least)
		span := sorted[to-1].Log - sorted[from].Log
		if significant && (distance >= minimum || span > 2*minimum) {
			split(from, from+at)
			split(from+at, to)
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

// boundary is by how many standard errors two neighbours among n must differ for a cut between
// them: of two that are closer, the next run may find the order reversed, and tell them
// apart as well. At least 1.5, and so many that by chance no more than three pairs of neighbours in
// two runs are as far apart: 2.2 among 115 cells. In 66 pairs of such runs, 2 pairs of cells had
// letters in opposite order by cost and 8 by throughput with that, 9 and 11 with 1.5.
func boundary(n int) float64 {
	const least, perRun = 1.5, 1.5
	if n < 10 {
		return least
	}
	return math.Max(least, math.Sqrt2*math.Erfinv(1-2*perRun/float64(n-1)))
}

// bestSplit finds the cut with the largest sum of squares between both sides,
// in units of the estimates' variances. distance is that of the two means.
func bestSplit(xs []Estimate, holds []bool, least float64) (at int, distance float64, significant bool) {
	k := len(xs)
	if k < 2 {
		return 0, 0, false
	}
	weights, weighted := prefix(xs)
	best := 0.0
	for cut := 1; cut < k; cut++ {
		if !holds[cut] || xs[cut].Log-xs[cut-1].Log < least*math.Hypot(xs[cut].Err, xs[cut-1].Err) {
			continue
		}
		w1, w2 := weights[cut], weights[k]-weights[cut]
		m1, m2 := weighted[cut]/w1, (weighted[k]-weighted[cut])/w2
		if between := w1 * w2 / (w1 + w2) * (m1 - m2) * (m1 - m2); between > best {
			at, distance, best = cut, math.Abs(m1-m2), between
		}
	}
	return at, distance, at > 0 && best*math.Pi/(2*(math.Pi-2)) > splitLimit(k)
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

// prefix sums weights, the inverse variances, and weighted values. An error of
// zero counts as tiny, so that exact values are told apart.
func prefix(xs []Estimate) (weights, weighted []float64) {
	weights, weighted = make([]float64, len(xs)+1), make([]float64, len(xs)+1)
	for i, x := range xs {
		w := 1 / math.Max(x.Err*x.Err, 1e-18)
		weights[i+1] = weights[i] + w
		weighted[i+1] = weighted[i] + w*x.Log
	}
	return weights, weighted
}

// splitLimit is the 95 % quantile that Scott and Knott give for the split of k
// means: χ² with k/(π-2) degrees of freedom, by the approximation of Wilson and
// Hilferty (PNAS 17, 1931).
func splitLimit(k int) float64 {
	degrees := float64(k) / (math.Pi - 2)
	z := moremath.InvCDF(moremath.StdNormal)(Confidence)
	a := 2 / (9 * degrees)
	return degrees * math.Pow(1-a+z*math.Sqrt(a), 3)
}

// Letters names groups A, B, ..., Z, AA, AB, ...
func Letters(group int) string {
	name := ""
	for n := group; n >= 0; n = n/26 - 1 {
		name = string(rune('A'+n%26)) + name
	}
	return name
}
