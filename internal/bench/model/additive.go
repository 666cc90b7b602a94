package model

import (
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Point is the measured cost of one cell, or of several that are the same
// computation: the natural logarithm of ns per byte and the relative variance of
// that figure.
type Point struct {
	Cell     alg.Suite
	Log      float64
	Variance float64

	n, within float64 // connections that it rests on, and their mean variance by slices
}

// Additive is a fit of cost = cipher + MAC in ns per byte, the base being part
// of both (Box, Hunter and Hunter, Statistics for Experimenters, ch. 8; two-way
// layout without interaction). A MAC costs what its primitive does, since the tag's
// length does not change what is computed, and one amount more or less where it is
// applied to the ciphertext (-etm), if the data ask for that. AEAD ciphers are
// cells of their own, which nothing else predicts. Fitted on relative residuals,
// so that a slow cipher does not dominate.
type Additive struct {
	columns    map[effect]int // effects to parameters
	component  map[effect]int // ciphers and primitives that measured cells connect, by number
	beta       []float64
	inverse    [][]float64 // covariance of beta
	own        map[alg.Suite]Point
	ETM        bool    // applying the MAC to the ciphertext has an effect
	floor      float64 // no cost is predicted below it
	Parameters int     // that the cells have used up: the trace of the hat matrix
}

// effect is one term of a cell's cost.
type effect struct {
	kind effectKind
	name string
}

type effectKind int

const (
	cipherEffect effectKind = iota
	primitiveEffect
	etmEffect // of all -etm MACs alike
)

// effectsOf are the terms that add up to the cost of a cell.
func (m *Additive) effectsOf(cell alg.Suite) []effect {
	out := []effect{{cipherEffect, cell.Cipher}, {primitiveEffect, alg.Primitive(cell.MAC)}}
	if m.ETM && isETM(cell) {
		out = append(out, effect{etmEffect, ""})
	}
	return out
}

func isETM(cell alg.Suite) bool {
	a, _ := alg.Lookup(alg.MAC, cell.MAC)
	return a.ETM
}

// etmPrior is what the effect of -etm is expected to be, as a standard deviation
// relative to the median cost: something, so that it is determined where every MAC
// of a primitive is of one kind.
const etmPrior = 0.2

const (
	reweights   = 5   // rounds of weights; more change the fourth digit at most
	leverageCap = 0.9 // above it a cell is nearly its own and only predictor
	maxShift    = 0.5 // that leaving a cell out may move its prediction, in logs
)

// maxEffects is how many ciphers and primitives a fit takes; OpenSSH has about
// 25. The work grows with their third power, and a file may name as many as it
// likes.
const maxEffects = 128

// FitAdditive fits the points, each of another cell. Where they name more than
// maxEffects ciphers and primitives, every cell is one of its own.
func FitAdditive(points []Point) *Additive {
	if countEffects(points) > maxEffects {
		return alone(points)
	}
	m := fitAdditive(points, true)
	if i, ok := m.columns[effect{etmEffect, ""}]; ok && math.Abs(m.beta[i]) > surprising*math.Sqrt(m.variance([]int{i})) {
		return m
	}
	return fitAdditive(points, false)
}

// countEffects is how many ciphers and primitives the points name.
func countEffects(points []Point) int {
	named := map[effect]bool{}
	for _, p := range points {
		named[effect{cipherEffect, p.Cell.Cipher}] = true
		named[effect{primitiveEffect, alg.Primitive(p.Cell.MAC)}] = true
	}
	return len(named)
}

// alone is a fit in which no cell predicts another.
func alone(points []Point) *Additive {
	m := &Additive{columns: map[effect]int{}, component: map[effect]int{}, own: map[alg.Suite]Point{}, Parameters: len(points)}
	for _, p := range points {
		m.own[p.Cell] = p
	}
	return m
}

func fitAdditive(points []Point, etm bool) *Additive {
	m := &Additive{ETM: etm, columns: map[effect]int{}, component: map[effect]int{}, own: map[alg.Suite]Point{}, floor: math.Inf(1)}
	var rows []row
	for _, p := range points {
		if p.Cell.MAC == "" {
			m.own[p.Cell] = p
			continue
		}
		r := row{y: math.Exp(p.Log), variance: math.Max(p.Variance, 1e-8)}
		for _, e := range m.effectsOf(p.Cell) {
			r.columns = append(r.columns, m.column(e))
		}
		rows = append(rows, r)
		m.floor = math.Min(m.floor, r.y/4)
	}
	m.connect(points)
	m.solve(rows)
	m.Parameters = len(m.own) + int(math.Round(m.trace(rows)))
	return m
}

// row is one equation: the sum of beta over the columns = y, with a relative
// variance.
type row struct {
	columns     []int
	y, variance float64
}

func (r row) fitted(beta []float64) float64 {
	sum := 0.0
	for _, i := range r.columns {
		sum += beta[i]
	}
	return sum
}

func (m *Additive) column(e effect) int {
	i, ok := m.columns[e]
	if !ok {
		i = len(m.columns)
		m.columns[e] = i
	}
	return i
}

// connect numbers the connected components of the graph of ciphers and primitives
// whose edges are the measured cells: a cell can be predicted only inside one of
// them.
func (m *Additive) connect(points []Point) {
	parent := make([]int, len(m.columns))
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			i = parent[i]
		}
		return i
	}
	ends := func(cell alg.Suite) (cipher, mac effect) {
		return effect{cipherEffect, cell.Cipher}, effect{primitiveEffect, alg.Primitive(cell.MAC)}
	}
	for _, p := range points {
		if p.Cell.MAC != "" {
			cipher, mac := ends(p.Cell)
			parent[root(m.columns[cipher])] = root(m.columns[mac])
		}
	}
	for _, p := range points {
		if p.Cell.MAC != "" {
			cipher, mac := ends(p.Cell)
			m.component[cipher], m.component[mac] = root(m.columns[cipher]), root(m.columns[mac])
		}
	}
}

// solve finds the parameters by iteratively reweighted least squares. Weights
// use the fitted value, not the measured one, which would favour small errors.
func (m *Additive) solve(rows []row) {
	n := len(m.columns)
	m.beta = make([]float64, n)
	if n == 0 {
		return
	}
	fitted := make([]float64, len(rows))
	for i, r := range rows {
		fitted[i] = r.y
	}
	for round := range reweights {
		a, b := normalEquations(rows, fitted, n)
		if i, ok := m.columns[effect{etmEffect, ""}]; ok {
			prior := etmPrior * stats.Median(fitted)
			a[i][i] += 1 / (prior * prior)
		}
		factor := cholesky(a)
		m.beta = backSolve(factor, b)
		for i, r := range rows {
			fitted[i] = math.Max(r.fitted(m.beta), m.floor)
		}
		if round == reweights-1 {
			m.inverse = invert(factor)
		}
	}
}

func normalEquations(rows []row, fitted []float64, n int) (a [][]float64, b []float64) {
	a, b = square(n), make([]float64, n)
	trace := 0.0
	for i, r := range rows {
		weight := 1 / (r.variance * fitted[i] * fitted[i])
		for _, p := range r.columns {
			for _, q := range r.columns {
				a[p][q] += weight
			}
			b[p] += weight * r.y
			trace += weight
		}
	}
	// A whisper of a ridge fixes the one direction that no cell can see: what is
	// moved from all ciphers to all MACs.
	for i := range n {
		a[i][i] += 1e-10 * trace
	}
	return a, b
}

// variance of the sum of some parameters.
func (m *Additive) variance(columns []int) float64 {
	sum := 0.0
	for _, p := range columns {
		for _, q := range columns {
			sum += m.inverse[p][q]
		}
	}
	return math.Max(0, sum)
}

// trace of the hat matrix: how many parameters the fit has used up, where priors
// hold some of them back (Hastie, Tibshirani and Friedman, The Elements of
// Statistical Learning, 7.6).
func (m *Additive) trace(rows []row) float64 {
	sum := 0.0
	for _, r := range rows {
		fitted := math.Max(r.fitted(m.beta), m.floor)
		sum += math.Min(1, m.variance(r.columns)/(r.variance*fitted*fitted))
	}
	return sum
}

// Predict returns the logarithm of a cell's cost and the standard error that
// the parameters leave in it; ok is false where the measured cells do not
// determine it.
func (m *Additive) Predict(cell alg.Suite) (log, err float64, ok bool) {
	if p, ok := m.own[cell]; ok || cell.MAC == "" {
		return p.Log, math.Sqrt(p.Variance), ok
	}
	cipher, known := m.component[effect{cipherEffect, cell.Cipher}]
	primitive, both := m.component[effect{primitiveEffect, alg.Primitive(cell.MAC)}]
	if !known || !both || cipher != primitive {
		return 0, 0, false
	}
	var r row
	for _, e := range m.effectsOf(cell) {
		i, measured := m.columns[e]
		if !measured {
			return 0, 0, false
		}
		r.columns = append(r.columns, i)
	}
	value := math.Max(r.fitted(m.beta), m.floor)
	return math.Log(value), math.Sqrt(m.variance(r.columns)) / value, true
}

// Without predicts a cell from all others but itself: the leave-one-out
// identity of least squares. ok is false where the others do not determine it.
func (m *Additive) Without(p Point) (log, err float64, ok bool) {
	if _, own := m.own[p.Cell]; own || p.Cell.MAC == "" {
		return 0, 0, false
	}
	log, err, ok = m.Predict(p.Cell)
	if !ok {
		return 0, 0, false
	}
	leverage := err * err / math.Max(p.Variance, 1e-8)
	if leverage > leverageCap {
		return 0, 0, false
	}
	shift := (p.Log - log) * leverage / (1 - leverage)
	return log - math.Max(-maxShift, math.Min(maxShift, shift)), math.Sqrt(p.Variance * leverage / (1 - leverage)), true
}

// square returns a zero matrix.
func square(n int) [][]float64 {
	all := make([]float64, n*n)
	out := make([][]float64, n)
	for i := range out {
		out[i] = all[i*n : (i+1)*n]
	}
	return out
}

// cholesky factors a positive definite matrix in place: a = L·Lᵀ.
func cholesky(a [][]float64) [][]float64 {
	for j := range a {
		for k := range j {
			a[j][j] -= a[j][k] * a[j][k]
		}
		a[j][j] = math.Sqrt(math.Max(a[j][j], 1e-300))
		for i := j + 1; i < len(a); i++ {
			for k := range j {
				a[i][j] -= a[i][k] * a[j][k]
			}
			a[i][j] /= a[j][j]
		}
	}
	return a
}

// backSolve solves L·Lᵀ·x = b.
func backSolve(l [][]float64, b []float64) []float64 {
	x := slices.Clone(b)
	for i := range l {
		for k := range i {
			x[i] -= l[i][k] * x[k]
		}
		x[i] /= l[i][i]
	}
	for i := len(l) - 1; i >= 0; i-- {
		for k := i + 1; k < len(l); k++ {
			x[i] -= l[k][i] * x[k]
		}
		x[i] /= l[i][i]
	}
	return x
}

func invert(l [][]float64) [][]float64 {
	out := make([][]float64, len(l))
	for i := range out {
		unit := make([]float64, len(l))
		unit[i] = 1
		out[i] = backSolve(l, unit)
	}
	return out
}
