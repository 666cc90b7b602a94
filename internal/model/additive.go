package model

import (
	"math"
	"slices"

	"sshpace/internal/alg"
)

// Point is the measured cost of one cell: the natural logarithm of ns per byte
// and the relative variance of that figure.
type Point struct {
	Cell     alg.Suite
	Log      float64
	Variance float64
}

// Additive is a fit of cost = cipher + MAC in ns per byte, the base being part
// of both (Box, Hunter and Hunter, Statistics for Experimenters, ch. 8; two-way
// layout without interaction). AEAD ciphers are cells of their own, which
// nothing else predicts. Fitted on relative residuals, so that a slow cipher does
// not dominate, and robustly (Huber 1964), so that a spoilt cell does not.
type Additive struct {
	columns    map[string]int // cipher and MAC names to parameters
	component  map[string]int // names that measured cells connect, by number
	beta       []float64
	inverse    [][]float64 // covariance of beta
	own        map[alg.Suite]Point
	floor      float64 // no cost is predicted below it
	Parameters int
}

const (
	huberLimit  = 2.0 // standard deviations beyond which a residual counts less
	reweights   = 5   // rounds of weights; more change the fourth digit at most
	leverageCap = 0.9 // above it a cell is nearly its own and only predictor
	maxShift    = 0.5 // that leaving a cell out may move its prediction, in logs
)

// FitAdditive fits the points, each of another cell.
func FitAdditive(points []Point) *Additive {
	m := &Additive{columns: map[string]int{}, component: map[string]int{}, own: map[alg.Suite]Point{}, floor: math.Inf(1)}
	var rows []row
	for _, p := range points {
		if p.Cell.MAC == "" {
			m.own[p.Cell] = p
			continue
		}
		y := math.Exp(p.Log)
		rows = append(rows, row{m.column(p.Cell.Cipher), m.column(p.Cell.MAC), y, math.Max(p.Variance, 1e-8)})
		m.floor = math.Min(m.floor, y/4)
	}
	m.connect(points)
	m.solve(rows)
	m.Parameters = len(m.columns) - m.components() + len(m.own)
	return m
}

// components counts the separate pieces of the design: each hides one
// parameter, what could be moved from its ciphers to its MACs.
func (m *Additive) components() int {
	seen := map[int]bool{}
	for _, c := range m.component {
		seen[c] = true
	}
	return len(seen)
}

// row is one equation: beta[cipher] + beta[mac] = y, with a relative variance.
type row struct {
	cipher, mac int
	y, variance float64
}

func (m *Additive) column(name string) int {
	i, ok := m.columns[name]
	if !ok {
		i = len(m.columns)
		m.columns[name] = i
	}
	return i
}

// connect numbers the connected components of the graph whose edges are the
// measured cells: a cell can be predicted only inside one of them.
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
	for _, p := range points {
		if p.Cell.MAC == "" {
			continue
		}
		a, b := root(m.columns[p.Cell.Cipher]), root(m.columns[p.Cell.MAC])
		if a != b {
			parent[a] = b
		}
	}
	for name, i := range m.columns {
		m.component[name] = root(i)
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
		a, b := normalEquations(rows, fitted, n, round > 0)
		factor := cholesky(a)
		m.beta = backSolve(factor, b)
		for i, r := range rows {
			fitted[i] = math.Max(m.beta[r.cipher]+m.beta[r.mac], m.floor)
		}
		if round == reweights-1 {
			m.inverse = invert(factor)
		}
	}
}

func normalEquations(rows []row, fitted []float64, n int, robust bool) (a [][]float64, b []float64) {
	a, b = square(n), make([]float64, n)
	trace := 0.0
	for i, r := range rows {
		weight := 1 / (r.variance * fitted[i] * fitted[i])
		if z := math.Abs(r.y-fitted[i]) / fitted[i] / math.Sqrt(r.variance); robust && z > huberLimit {
			weight *= huberLimit / z
		}
		a[r.cipher][r.cipher] += weight
		a[r.mac][r.mac] += weight
		a[r.cipher][r.mac] += weight
		a[r.mac][r.cipher] += weight
		b[r.cipher] += weight * r.y
		b[r.mac] += weight * r.y
		trace += 2 * weight
	}
	// A whisper of a ridge fixes the one direction that no cell can see: what is
	// moved from all ciphers to all MACs.
	for i := range n {
		a[i][i] += 1e-10 * trace
	}
	return a, b
}

// Predict returns the logarithm of a cell's cost and the standard error that
// the parameters leave in it; ok is false where the measured cells do not
// determine it.
func (m *Additive) Predict(cell alg.Suite) (log, err float64, ok bool) {
	if cell.MAC == "" {
		p, ok := m.own[cell]
		return p.Log, math.Sqrt(p.Variance), ok
	}
	c, known := m.component[cell.Cipher]
	d, both := m.component[cell.MAC]
	if !known || !both || c != d {
		return 0, 0, false
	}
	i, j := m.columns[cell.Cipher], m.columns[cell.MAC]
	value := math.Max(m.beta[i]+m.beta[j], m.floor)
	variance := m.inverse[i][i] + m.inverse[j][j] + 2*m.inverse[i][j]
	return math.Log(value), math.Sqrt(math.Max(0, variance)) / value, true
}

// Without predicts a cell from all others but itself: the leave-one-out
// identity of least squares. ok is false where the others do not determine it.
func (m *Additive) Without(p Point) (log, err float64, ok bool) {
	if p.Cell.MAC == "" {
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
