package stats

import (
	"cmp"
	"math"
	"slices"
)

// exactSigned is the largest sample for which the signed-rank distribution is enumerated; above it
// the normal approximation is good to 0.002.
const exactSigned = 25

// signedRankExact counts the subsets of the ranks by their sum: under the null hypothesis each rank
// is positive with probability one half, ties or not. Ranks and the sum of the positive ones are
// doubled, which makes mean ranks whole.
func signedRankExact(doubled []int, positive int) float64 {
	top := 0
	for _, rank := range doubled {
		top += rank
	}
	ways := make([]float64, top+1)
	ways[0] = 1
	for _, rank := range doubled {
		for sum := top; sum >= rank; sum-- {
			ways[sum] += ways[sum-rank]
		}
	}
	tail := 0.0
	for sum := 0; sum <= min(positive, top-positive); sum++ {
		tail += ways[sum]
	}
	return math.Min(1, 2*tail/math.Exp2(float64(len(doubled))))
}

// doubledRanks returns the ranks of n values without ties, doubled.
func doubledRanks(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = 2 * (i + 1)
	}
	return out
}

// HodgesLehmann returns the median of the pairwise means of differences, a robust estimate of their
// center, with the interval that inverts the signed-rank test (Hodges and Lehmann, Annals of
// Mathematical Statistics 34, 1963). Below six differences no 95 % interval exists, and the one
// returned is their range.
func HodgesLehmann(differences []float64) Interval {
	n := len(differences)
	if n == 0 {
		return Interval{}
	}
	walsh := make([]float64, 0, n*(n+1)/2)
	for i, x := range differences {
		for _, y := range differences[i:] {
			walsh = append(walsh, (x+y)/2)
		}
	}
	slices.Sort(walsh)
	cut := signedRankCut(n)
	return Interval{Median(walsh), walsh[cut], walsh[len(walsh)-1-cut], n}
}

// signedRankCut returns the number of Walsh averages outside the interval on either side: the
// largest k with P(W <= k) <= 2.5 %.
func signedRankCut(n int) int {
	if n < MinExact {
		return 0
	}
	if n > exactSigned {
		mean, deviation := float64(n*(n+1))/4, math.Sqrt(float64(n*(n+1)*(2*n+1))/24)
		return max(0, int(mean-normalQuantile*deviation-0.5))
	}
	cut := 0
	for signedRankExact(doubledRanks(n), 2*(cut+1)) <= 1-Confidence {
		cut++
	}
	return cut
}

func pIf(differs bool) float64 {
	if differs {
		return 0
	}
	return 1
}

// Holm adjusts p values for the number of tests, so that comparing adjusted values with α keeps the
// chance of even one false finding below α (Holm, Scandinavian Journal of Statistics 6, 1979).
func Holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	adjusted := make([]float64, len(ps))
	highest := 0.0
	for rank, i := range order {
		highest = math.Max(highest, math.Min(1, ps[i]*float64(len(ps)-rank)))
		adjusted[i] = highest
	}
	return adjusted
}

// KendallTau returns the rank correlation τ-b of two rankings of the same things, from -1
// (reversed) to 1 (same order), with ties counted for neither side (Kendall, Biometrika 33, 1945).
// It is 0 where one side is all ties. The slices have equal lengths.
func KendallTau(xs, ys []float64) float64 {
	agree, onlyX, onlyY := 0.0, 0.0, 0.0
	for i := range xs {
		for j := range i {
			dx, dy := sign(xs[i]-xs[j]), sign(ys[i]-ys[j])
			agree += dx * dy
			onlyX += dx * dx
			onlyY += dy * dy
		}
	}
	if onlyX == 0 || onlyY == 0 {
		return 0
	}
	return agree / math.Sqrt(onlyX*onlyY)
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
