package model

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"

	"sshpace/internal/base/alg"
)

// point is the measured cost of some cells that are the same computation: the natural logarithm of
// ns per byte and the variance of that.
type point struct {
	cell          alg.Suite
	log, variance float64
}

// weight returns the weight of the cost itself, whose relative error the variance is.
func (p point) weight() float64 { return 1 / (math.Max(p.variance, 1e-8) * math.Exp(2*p.log)) }

// additive is a fit of cost = cipher + MAC in ns per byte, the base being part of both (Box, Hunter
// and Hunter, Statistics for Experimenters, ch. 8: two-way layout without interaction), by weighted
// least squares on relative residuals, so that a slow cipher does not dominate. A MAC costs as much
// as its primitive. AEAD ciphers are not part of it.
type additive struct {
	columns map[string]int   // of ciphers and primitives
	costs   []float64        // of columns
	inverse blas64.Symmetric // covariance of these
	floor   float64          // no cost is predicted below it
}

const (
	mostColumns  = 64  // of a fit, whose work grows with their third power; OpenSSH has about 25
	mostLeverage = 0.9 // above it a cell is nearly its own and only predictor
	undetermined = 1.0 // relative variance that other cells do not explain
)

// columnsOf names the parts of a cell's computation and cost: its cipher, and the primitive of its
// MAC. The length of a tag changes nothing, nor does applying it to the ciphertext.
func columnsOf(cell alg.Suite) [2]string {
	return [2]string{cell.Cipher, "+" + alg.Primitive(cell.MAC)}
}

// fitAdditive fits the points, each of another computation and with a MAC.
func fitAdditive(points []point) *additive {
	m := &additive{columns: map[string]int{}, floor: math.Inf(1)}
	for _, p := range points {
		for _, column := range columnsOf(p.cell) {
			if _, known := m.columns[column]; !known {
				m.columns[column] = len(m.columns)
			}
		}
		m.floor = math.Min(m.floor, math.Exp(p.log)/4)
	}
	n := len(m.columns)
	if n == 0 || n > mostColumns {
		return &additive{}
	}
	normal := blas64.Symmetric{Uplo: blas.Upper, N: n, Stride: n, Data: make([]float64, n*n)}
	right, trace := make([]float64, n), 0.0
	for _, p := range points {
		of, weight := columnsOf(p.cell), p.weight()
		i, j := m.columns[of[0]], m.columns[of[1]]
		trace += weight
		for _, k := range []int{i, j} {
			right[k] += weight * math.Exp(p.log)
			normal.Data[k*n+k] += weight
		}
		normal.Data[min(i, j)*n+max(i, j)] += weight
	}
	for k := range n { // a tiny ridge term makes the unidentifiable direction unique: a cost moved from all ciphers to all MACs
		normal.Data[k*n+k] += 1e-10 * trace
	}
	factor, definite := lapack64.Potrf(normal)
	if !definite {
		return &additive{}
	}
	lapack64.Potrs(factor, blas64.General{Rows: n, Cols: 1, Stride: 1, Data: right})
	m.costs = right
	m.inverse, _ = lapack64.Potri(factor)
	return m
}

// covariance returns the covariance of the costs of two columns.
func (m *additive) covariance(i, j int) float64 {
	return m.inverse.Data[min(i, j)*m.inverse.Stride+max(i, j)]
}

// others returns the logarithm of the cost of a cell and its standard error by all points but its
// own, if it has one: leave-one-out, by the identity of least squares (Allen, Technometrics 16,
// 1974). The error is infinite where they do not determine it.
func (m *additive) others(cell alg.Suite, own *point) (log, err float64) {
	of := columnsOf(cell)
	i, known := m.columns[of[0]]
	j, both := m.columns[of[1]]
	if !known || !both || cell.MAC == "" {
		return 0, math.Inf(1)
	}
	cost, variance := m.costs[i]+m.costs[j], math.Max(0, m.covariance(i, i)+2*m.covariance(i, j)+m.covariance(j, j))
	if own != nil {
		leverage := variance * own.weight()
		if leverage > mostLeverage {
			return 0, math.Inf(1)
		}
		cost, variance = (cost-leverage*math.Exp(own.log))/(1-leverage), variance/(1-leverage)
	}
	if cost = math.Max(cost, m.floor); variance > undetermined*cost*cost {
		return 0, math.Inf(1)
	}
	return math.Log(cost), math.Sqrt(variance) / cost
}
