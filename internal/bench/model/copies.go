package model

import (
	"math"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// windowCopies is how many consecutive copies are a window of time, and share one level of the
// machine: about seven seconds, well below the time scale of frequency and load.
const windowCopies = 16

// CopiesOf removes from copies, in the order of time, the level of the machine in each window of
// them: a two-way fit of windows and cells (Tukey's median polish), as far as levels exceed their
// error. drift holds these levels, for each copy, as logarithms.
func CopiesOf(all []record.Result) (out Sittings, drift []float64) {
	cells := map[record.Cell]int{}
	readings := make([]stats.Reading, len(all))
	for i, copied := range all {
		cell := copied.Trial.Cell()
		if _, seen := cells[cell]; !seen {
			cells[cell] = len(cells)
		}
		readings[i] = stats.Reading{Row: i / windowCopies, Col: cells[cell], Value: math.Log(float64(copied.Sample.ElapsedNS) / float64(copied.Sample.Bytes))}
	}
	fit := stats.TwoWay(readings, stats.Middle, stats.Middle)
	left, numbers := make([]float64, len(all)), make([]float64, len(fit.Rows))
	for i, r := range readings {
		left[i] = fit.Left(r)
		numbers[r.Row]++
	}
	noise := stats.Scale(left, 0)
	for i, r := range readings {
		level := fit.Rows[r.Row]
		if level != 0 {
			level *= math.Max(0, 1-noise*noise/numbers[r.Row]/(level*level)) // James and Stein 1961
		}
		t := &Transfer{Trial: all[i].Trial}
		t.of[wall].Estimate = stats.Estimate{Log: r.Value - level, N: 1}
		out.Connections, drift = append(out.Connections, t), append(drift, level)
	}
	return out, drift
}
