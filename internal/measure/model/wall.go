package model

import (
	"math"
	"slices"

	"sshpace/internal/base/stats"
)

// work is what the costs say about a cell: of the side with more to do, of the
// other, both in ns per byte. Zero: unknown.
type work struct {
	more, less float64
	err        float64 // relative standard error
}

// wallModel is wall time per byte = more·a + less·b + c, none negative. With a
// core for each side, the slower side decides and a is near 1, b near 0; on one
// core both add up; where the link or the window is the limit, c is all there is.
type wallModel struct{ a, b, c float64 }

func (m wallModel) of(w work) float64 { return m.a*w.more + m.b*w.less + m.c }

// usualWall is the model for a number of free cores before anything was
// measured.
func usualWall(cores int) wallModel {
	if cores == 1 {
		return wallModel{a: 1, b: 1}
	}
	return wallModel{a: 1}
}

// fitWall fits the model to measured wall times on relative residuals. Fewer
// than three points leave the usual model, scaled to them.
func fitWall(works []work, walls, weights []float64, cores int) wallModel {
	usual := usualWall(cores)
	if len(works) < 3 {
		return usual.scaled(works, walls)
	}
	best, least := usual.scaled(works, walls), math.Inf(1)
	for subset := 1; subset < 8; subset++ {
		m, ok := fitSubset(works, walls, weights, subset)
		if !ok {
			continue
		}
		loss := 0.0
		for i, w := range works {
			loss += weights[i] * huberLoss(math.Log(walls[i]/m.of(w)))
		}
		// Every term must pay for itself, by more than Akaike's 2: connections have
		// their luck in common with their neighbours in time.
		if loss += termWorth * float64(bits(subset)); loss < least {
			best, least = m, loss
		}
	}
	return best
}

// termWorth is the deviance that a term must explain: 3.5 standard errors. With 2, other terms
// came and went from run to run, and cells with them by a tenth.
const termWorth = 12

func (m wallModel) scaled(works []work, walls []float64) wallModel {
	var ratios []float64
	for i, w := range works {
		if base := m.of(w); base > 0 {
			ratios = append(ratios, walls[i]/base)
		}
	}
	if len(ratios) == 0 {
		return m
	}
	r := stats.Median(ratios)
	return wallModel{m.a * r, m.b * r, m.c * r}
}

func huberLoss(x float64) float64 {
	const limit = 0.1
	if x = math.Abs(x); x > limit {
		return limit * (2*x - limit)
	}
	return x * x
}

func bits(subset int) int { return subset&1 + subset>>1&1 + subset>>2&1 }

// fitSubset is weighted least squares on the terms of the subset; ok is false
// if a coefficient is negative or a prediction not positive.
func fitSubset(works []work, walls, weights []float64, subset int) (wallModel, bool) {
	var terms []int
	for term := range 3 {
		if subset>>term&1 == 1 {
			terms = append(terms, term)
		}
	}
	n := len(terms)
	var beta []float64
	robust := slices.Clone(weights)
	for range 3 {
		a, b := square(n), make([]float64, n)
		for i, w := range works {
			x := [3]float64{w.more, w.less, 1}
			weight := robust[i] / (walls[i] * walls[i])
			for p, tp := range terms {
				b[p] += weight * x[tp] * walls[i]
				for q, tq := range terms {
					a[p][q] += weight * x[tp] * x[tq]
				}
			}
		}
		for p := range a {
			a[p][p] *= 1 + 1e-9
			if a[p][p] <= 0 {
				return wallModel{}, false
			}
		}
		beta = backSolve(cholesky(a), b)
		m := modelOf(terms, beta)
		for i, w := range works {
			fitted := m.of(w)
			if fitted <= 0 {
				return m, false
			}
			robust[i] = weights[i]
			if off := math.Abs(math.Log(walls[i] / fitted)); off > 0.1 {
				robust[i] *= 0.1 / off
			}
		}
	}
	return modelOf(terms, beta), slices.Min(beta) >= 0
}

func modelOf(terms []int, beta []float64) wallModel {
	var c [3]float64
	for p, term := range terms {
		c[term] = beta[p]
	}
	return wallModel{c[0], c[1], c[2]}
}

// fromCosts predicts wall times from the costs of both sides; etm says whether
// these found an effect of -etm.
func fromCosts(works []work, cores int, etm bool) predictor {
	return func(points []Point, at []int) fit {
		var xs []work
		var walls, weights []float64
		for k, p := range points {
			if w := works[at[k]]; w.more > 0 {
				xs, walls = append(xs, w), append(walls, math.Exp(p.Log))
				weights = append(weights, 1/math.Max(p.Variance, 1e-8))
			}
		}
		m := fitWall(xs, walls, weights, cores)
		predict := func(i int) (float64, float64, bool) {
			wall := m.of(works[i])
			if works[i].more <= 0 || wall <= 0 || len(xs) == 0 {
				return 0, 0, false
			}
			return math.Log(wall), works[i].err, true
		}
		// Two or three parameters hardly notice whether one cell is among many.
		return fit{predict, predict, count(m), etm}
	}
}

func count(m wallModel) int {
	n := 0
	for _, c := range []float64{m.a, m.b, m.c} {
		if c > 0 {
			n++
		}
	}
	return n
}
