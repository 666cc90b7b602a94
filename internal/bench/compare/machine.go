package compare

import (
	"cmp"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// MachineEffect is the two-way model log(cost) = machine + cell: how fast a machine
// is overall, and which cells deviate most from that.
type MachineEffect struct {
	Label     string      `json:"label"`
	Speed     float64     `json:"speed_ratio"`  // relative to the first
	Residual  float64     `json:"residual_pct"` // root mean square of the cells' deviations
	Deviating []Deviation `json:"deviating"`
}

// Deviation is a cell that is faster or slower on one machine than the speeds
// of machine and cell alone explain: a missing instruction, another library.
type Deviation struct {
	alg.Suite
	Direction record.Direction `json:"direction"`
	Factor    float64          `json:"speed_factor"` // above 1: faster than expected
}

// deviating is how many cells are listed per machine.
const deviating = 5

// machines fits log(speed) = machine + cell to the common cells. With every
// cell in every file the least-squares solution is that of the means.
func (c *Comparison) machines() {
	if len(c.Cells) == 0 {
		return
	}
	files := len(c.Inputs)
	sign := 1.0
	if c.By == rank.Cost {
		sign = -1
	}
	logs := make([][]float64, len(c.Cells))
	machine, cell := make([]float64, files), make([]float64, len(c.Cells))
	for i, row := range c.Cells {
		logs[i] = make([]float64, files)
		for k, v := range row.Values {
			logs[i][k] = sign * math.Log(v.Value)
			machine[k] += logs[i][k] / float64(len(c.Cells))
		}
		cell[i] = stats.Mean(logs[i])
	}
	grand := stats.Mean(machine)
	for k, in := range c.Inputs {
		m := MachineEffect{Label: in.Label, Speed: math.Exp(machine[k] - machine[0])}
		var residuals []float64
		for i, row := range c.Cells {
			residual := logs[i][k] - machine[k] - cell[i] + grand
			residuals = append(residuals, residual)
			m.Deviating = append(m.Deviating, Deviation{row.Suite, row.Direction, math.Exp(residual)})
		}
		m.Residual = 100 * stats.RMS(residuals)
		slices.SortStableFunc(m.Deviating, func(a, b Deviation) int {
			return cmp.Compare(math.Abs(math.Log(b.Factor)), math.Abs(math.Log(a.Factor)))
		})
		m.Deviating = m.Deviating[:min(deviating, len(m.Deviating))]
		c.Machines = append(c.Machines, m)
	}
}
