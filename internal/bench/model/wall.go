package model

import (
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
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

// usualWall is the model for a number of free cores, 0 if unknown, before anything was
// measured.
func usualWall(cores int) wallModel {
	if cores == 1 {
		return wallModel{a: 1, b: 1}
	}
	return wallModel{a: 1}
}

// walled is a cell whose costs and wall time per byte are known.
type walled struct {
	work
	cipher       string
	wall, weight float64 // ns per byte; inverse variance of its logarithm
}

// fitWall fits the model to measured wall times on relative residuals. Fewer than three
// cells leave the usual model, scaled to them. Ciphers that lie apart by all their cells have a
// level of their own, and no part in the model. Such levels, and the terms of any other than the
// usual model, must pay for themselves, by more than Akaike's 2: connections have their luck in
// common with their neighbours in time.
func fitWall(cells []walled, cores int) (best wallModel, apart map[string]stats.Estimate) {
	best = usualWall(cores).scaled(cells)
	if len(cells) < 3 {
		return best, nil
	}
	least := math.Inf(1)
	for _, fit := range wallFits(cores) {
		own, rest := map[string]stats.Estimate{}, cells
		for {
			m, terms, ok := fit(rest)
			if !ok {
				break
			}
			cipher, level := furthest(m, rest)
			if level.N == 0 {
				if loss := m.loss(rest) + termWorth*float64(terms) + levelWorth*float64(len(own)); loss < least {
					best, apart, least = m, own, loss
				}
				break
			}
			own[cipher] = level
			rest = slices.DeleteFunc(slices.Clone(rest), func(c walled) bool { return c.cipher == cipher })
		}
	}
	return best, apart
}

// wallFits are the forms that the model may have, and how many terms each has that must pay for
// themselves: any of the terms, and the usual form, at whatever speed.
func wallFits(cores int) (fits []func([]walled) (m wallModel, terms int, ok bool)) {
	for subset := 1; subset < 8; subset++ {
		fits = append(fits, func(cells []walled) (wallModel, int, bool) {
			m, ok := fitSubset(cells, subset)
			return m, bits(subset), ok
		})
	}
	return append(fits, func(cells []walled) (wallModel, int, bool) { return usualWall(cores).scaled(cells), 0, true })
}

// loss is the deviance that a model leaves.
func (m wallModel) loss(cells []walled) (loss float64) {
	for _, c := range cells {
		loss += c.weight * huberLoss(math.Log(c.wall/m.of(c.work)))
	}
	return loss
}

// furthest is the cipher that gains most by a level of its own, and that level; N is 0 where none
// gains enough. 3DES does on two cores of which another program keeps one busy: its sides seldom
// wake each other up, and the scheduler leaves them on both.
func furthest(m wallModel, cells []walled) (cipher string, level stats.Estimate) {
	of := map[string][]walled{}
	for _, c := range cells {
		of[c.cipher] = append(of[c.cipher], c)
	}
	most := levelWorth
	for _, name := range slices.Sorted(maps.Keys(of)) {
		own := of[name]
		if len(own) < 2 || len(cells)-len(own) < enoughOthers {
			continue
		}
		weight, off := 0.0, 0.0
		for _, c := range own {
			weight, off = weight+c.weight, off+c.weight*math.Log(c.wall/m.of(c.work))
		}
		off /= weight
		if gain := m.loss(own) - m.scaled(own).loss(own); gain > most {
			cipher, level, most = name, stats.Estimate{Log: off, Err: 1 / math.Sqrt(weight), N: len(own)}, gain
		}
	}
	return cipher, level
}

// termWorth is the deviance that a term must explain: 3.5 standard errors. With 2, other terms
// came and went from run to run, and cells with them by a tenth.
const termWorth = 12.0

// levelWorth is the same of a cipher's own level: chance explains as much in one of two hundred.
const levelWorth = 8.0

// scaled is a form at the speed that cells show on the mean, in which those that are far off
// weigh less.
func (m wallModel) scaled(cells []walled) wallModel {
	level := 0.0
	for range robustPasses {
		sum, weights := 0.0, 0.0
		for _, c := range cells {
			if base := m.of(c.work); base > 0 {
				off := math.Log(c.wall / base)
				weight := c.weight * robustly(off-level)
				sum, weights = sum+weight*off, weights+weight
			}
		}
		if weights > 0 {
			level = sum / weights
		}
	}
	r := math.Exp(level)
	return wallModel{m.a * r, m.b * r, m.c * r}
}

// Residuals beyond farOff count less and less.
const (
	farOff       = 0.1
	robustPasses = 4
)

// robustly is the weight of a residual.
func robustly(off float64) float64 { return math.Min(1, farOff/math.Max(farOff, math.Abs(off))) }

func huberLoss(x float64) float64 {
	if x = math.Abs(x); x > farOff {
		return farOff * (2*x - farOff)
	}
	return x * x
}

func bits(subset int) int { return subset&1 + subset>>1&1 + subset>>2&1 }

// fitSubset is weighted least squares on the terms of the subset; ok is false
// if a coefficient is negative or a prediction not positive.
func fitSubset(cells []walled, subset int) (wallModel, bool) {
	var terms []int
	for term := range 3 {
		if subset>>term&1 == 1 {
			terms = append(terms, term)
		}
	}
	n := len(terms)
	var beta []float64
	robust := make([]float64, len(cells))
	for i, c := range cells {
		robust[i] = c.weight
	}
	for range robustPasses {
		a, b := square(n), make([]float64, n)
		for i, c := range cells {
			x := [3]float64{c.more, c.less, 1}
			weight := robust[i] / (c.wall * c.wall)
			for p, tp := range terms {
				b[p] += weight * x[tp] * c.wall
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
		for i, c := range cells {
			fitted := m.of(c.work)
			if fitted <= 0 {
				return m, false
			}
			robust[i] = c.weight * robustly(math.Log(c.wall/fitted))
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
func fromCosts(cells []alg.Suite, works []work, cores int, etm bool) predictor {
	return func(points []Point, at []int) fit {
		var known []walled
		for k, p := range points {
			if w := works[at[k]]; w.more > 0 {
				known = append(known, walled{w, cells[at[k]].Cipher, math.Exp(p.Log), 1 / math.Max(p.Variance, 1e-8)})
			}
		}
		m, apart := fitWall(known, cores)
		predict := func(i int) (float64, float64, bool) {
			wall, own := m.of(works[i]), apart[cells[i].Cipher]
			if works[i].more <= 0 || wall <= 0 || len(known) == 0 {
				return 0, 0, false
			}
			return math.Log(wall) + own.Log, math.Hypot(works[i].err, own.Err), true
		}
		// Two or three parameters hardly notice whether one cell is among many.
		return fit{predict, predict, count(m) + len(apart), etm}
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
