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

// MachineEffect is the two-way model log(cost) = machine + cell: how fast a machine is overall, and
// which cells deviate most from that.
type MachineEffect struct {
	Label     string      `json:"label"`
	Speed     float64     `json:"speed_ratio"`  // relative to the first
	Residual  float64     `json:"residual_pct"` // root mean square of the cells' deviations
	Deviating []Deviation `json:"deviating"`
}

// Deviation is a cell that is faster or slower on one machine than the speeds of machine and cell
// explain: a missing instruction, another library.
type Deviation struct {
	alg.Suite
	Direction record.Direction `json:"direction"`
	Factor    float64          `json:"speed_factor"` // above 1: faster than expected
}

// deviating is the number of cells listed per machine.
const deviating = 5

// machines fits log(speed) = machine + cell to the common cells, by least squares.
func (c *Comparison) machines(cells []Line) {
	if len(cells) == 0 {
		return
	}
	sign := 1.0
	if c.by == rank.Cost {
		sign = -1
	}
	var readings []stats.Reading
	for i, row := range cells {
		for k, v := range row.Values {
			readings = append(readings, stats.Reading{Row: k, Col: i, Value: sign * math.Log(v.Value)})
		}
	}
	fit := stats.TwoWay(readings, stats.Mean, stats.Mean)
	for k, in := range c.Inputs {
		m := MachineEffect{Label: in.Label, Speed: math.Exp(fit.Rows[k] - fit.Rows[0])}
		var residuals []float64
		for i, row := range cells {
			residual := fit.Left(readings[i*len(c.Inputs)+k])
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
