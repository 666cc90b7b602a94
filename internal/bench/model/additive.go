package model

import (
	"math"

	"sshpace/internal/base/alg"
)

// point is the measured cost of some cells that are the same computation: the natural
// logarithm of ns per byte and the variance of that.
type point struct {
	cell          alg.Suite
	log, variance float64
}

// additive is a fit of cost = cipher + MAC in ns per byte, the base being part of both (Box,
// Hunter and Hunter, Statistics for Experimenters, ch. 8: two-way layout without
// interaction), by weighted least squares on relative residuals, so that a slow cipher does
// not dominate. A MAC costs what its primitive does. AEAD ciphers have no part in it.
type additive struct {
	columns  map[string]int // of ciphers and primitives
	rows     map[string]int // of points, by their columns' names
	inverse  [][]float64    // covariance of the parameters
	solve    [][]float64    // parameters of costs: rows are parameters, columns points
	leverage []float64
	floor    float64 // no cost is predicted below it
}

const (
	mostColumns  = 128 // of a fit, whose work grows with their third power; OpenSSH has about 25
	mostLeverage = 0.9 // above it a cell is nearly its own and only predictor
	undetermined = 1.0 // relative variance of what other cells do not tell
)

// fitAdditive fits the points, each of another computation and with a MAC.
func fitAdditive(points []point) *additive {
	m := &additive{columns: map[string]int{}, rows: map[string]int{}, leverage: make([]float64, len(points)), floor: math.Inf(1)}
	var columns [][2]int // of each point
	for k, p := range points {
		cipher, mac := name(p.cell)
		m.rows[cipher+" "+mac] = k
		columns = append(columns, [2]int{m.column(cipher), m.column("+" + mac)})
		m.floor = math.Min(m.floor, math.Exp(p.log)/4)
	}
	if len(m.columns) > mostColumns {
		return &additive{}
	}
	weights, normal, trace := make([]float64, len(points)), matrix(len(m.columns), len(m.columns)), 0.0
	for k, p := range points {
		weights[k] = 1 / (math.Max(p.variance, 1e-8) * math.Exp(2*p.log))
		trace += weights[k]
		for _, i := range columns[k] {
			for _, j := range columns[k] {
				normal[i][j] += weights[k]
			}
		}
	}
	for i := range normal { // a whisper of a ridge fixes what no cell can see: what is moved from all ciphers to all MACs
		normal[i][i] += 1e-10 * trace
	}
	m.inverse, m.solve = invert(normal), matrix(len(m.columns), len(points))
	for k, of := range columns {
		for i := range m.solve {
			m.solve[i][k] = weights[k] * (m.inverse[i][of[0]] + m.inverse[i][of[1]])
		}
		m.leverage[k] = m.solve[of[0]][k] + m.solve[of[1]][k]
	}
	return m
}

func (m *additive) column(name string) int {
	i, ok := m.columns[name]
	if !ok {
		i = len(m.columns)
		m.columns[name] = i
	}
	return i
}

// parameters are those of other costs of the same points.
func (m *additive) parameters(costs []float64) []float64 {
	beta := make([]float64, len(m.solve))
	for i, row := range m.solve {
		for k, share := range row {
			beta[i] += share * costs[k]
		}
	}
	return beta
}

// at is the cost of a cell, and the standard error that the parameters leave in its
// logarithm: infinite where the points do not determine it.
func (m *additive) at(beta []float64, cell alg.Suite) (cost, err float64) {
	cipher, mac := name(cell)
	i, known := m.columns[cipher]
	j, both := m.columns["+"+mac]
	if !known || !both || cell.MAC == "" {
		return 0, math.Inf(1)
	}
	cost = math.Max(beta[i]+beta[j], m.floor)
	variance := (m.inverse[i][i] + 2*m.inverse[i][j] + m.inverse[j][j]) / (cost * cost)
	if variance > undetermined {
		return cost, math.Inf(1)
	}
	return cost, math.Sqrt(math.Max(0, variance))
}

// others is the same by all cells but the cell itself: leave-one-out, by the identity of
// least squares (Allen, Technometrics 16, 1974).
func (m *additive) others(beta, costs []float64, cell alg.Suite) (cost, err float64) {
	cost, err = m.at(beta, cell)
	cipher, mac := name(cell)
	k, fitted := m.rows[cipher+" "+mac]
	if !fitted || math.IsInf(err, 1) {
		return cost, err
	}
	h := m.leverage[k]
	if h > mostLeverage {
		return cost, math.Inf(1)
	}
	return math.Max((cost-h*costs[k])/(1-h), m.floor), err / math.Sqrt(1-h)
}

// used is how many parameters the points determine: the trace of the hat matrix.
func (m *additive) used() (sum float64) {
	for _, h := range m.leverage {
		sum += h
	}
	return sum
}

// matrix is one of zeros.
func matrix(rows, columns int) [][]float64 {
	out := make([][]float64, rows)
	for i := range out {
		out[i] = make([]float64, columns)
	}
	return out
}

// invert is the inverse of a positive definite matrix, by Gauss and Jordan, in place.
func invert(a [][]float64) [][]float64 {
	for p := range a {
		pivot := 1 / math.Max(a[p][p], 1e-300)
		a[p][p] = 1
		for j := range a {
			a[p][j] *= pivot
		}
		for i := range a {
			if f := a[i][p]; i != p && f != 0 {
				a[i][p] = 0
				for j := range a {
					a[i][j] -= f * a[p][j]
				}
			}
		}
	}
	return a
}
