package picture

import (
	"math"
	"strconv"

	"gonum.org/v1/plot/vg"

	"sshpace/internal/base/unit"
	"sshpace/internal/show/document"
)

// axis maps values to places on the paper.
type axis struct {
	low, high float64
	from, to  vg.Length
	step      float64 // between ticks; of a logarithmic axis: the factor
	log       bool
}

// newLogAxis covers positive values from one power of two to another.
func newLogAxis(low, high float64, from, to vg.Length) axis {
	return axis{math.Exp2(math.Floor(math.Log2(low))), math.Exp2(math.Ceil(math.Log2(high) + 1e-9)), from, to, 2, true}
}

// newAxis covers the values with round ticks. Where zero is false, it need not start at 0.
func newAxis(low, high float64, zero bool, from, to vg.Length) axis {
	if zero {
		low = math.Min(0, low)
	}
	if !(high > low) {
		high = low + math.Max(1, math.Abs(low))
	}
	step := niceStep((high - low) / 6)
	return axis{math.Floor(low/step) * step, math.Ceil(high/step) * step, from, to, step, false}
}

func axisOf(c document.Chart, items []document.Item, from, to vg.Length) axis {
	low, high := extent(c.Shape, items)
	if c.Reference != 0 {
		low, high = min(low, c.Reference), max(high, c.Reference)
	}
	if c.Log && low > 0 {
		return newLogAxis(low, high, from, to)
	}
	return newAxis(low, high, c.Reference == 0 || c.Shape != document.Dots, from, to)
}

// niceStep returns the next of 1, 2, 5 times a power of ten.
func niceStep(rough float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= rough*0.999 {
			return m * power
		}
	}
	return 10 * power
}

func (a axis) at(v float64) vg.Length {
	share := (v - a.low) / (a.high - a.low)
	if a.log {
		share = math.Log(v/a.low) / math.Log(a.high/a.low)
	}
	return a.from + vg.Length(share)*(a.to-a.from)
}

// ticks returns the round values.
func (a axis) ticks() []float64 {
	var out []float64
	if a.log {
		for v := a.low; v <= a.high*1.001; v *= a.step {
			out = append(out, v)
		}
		return out
	}
	for i := 0; i <= int(math.Round((a.high-a.low)/a.step)); i++ {
		out = append(out, a.low+float64(i)*a.step)
	}
	return out
}

// tickText prints a tick without needless digits.
func (a axis) tickText(v float64) string {
	if a.log {
		return unit.Digits(v)
	}
	digits := max(0, int(math.Ceil(-math.Log10(a.step)-1e-9)))
	return strconv.FormatFloat(v, 'f', digits, 64)
}

// extent returns the least and the greatest value that items of a chart show; cells of a heat map
// show no interval.
func extent(shape document.Shape, items []document.Item) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, item := range items {
		sum := 0.0
		for _, p := range item.Points {
			if !p.Known {
				continue
			}
			switch sum += p.Value; shape {
			case document.Stack:
				low, high = 0, math.Max(high, sum)
			case document.Heat:
				low, high = math.Min(low, p.Value), math.Max(high, p.Value)
			default:
				low, high = math.Min(low, p.Lo), math.Max(high, p.Hi)
			}
		}
	}
	if math.IsInf(low, 0) || math.IsInf(high, 0) {
		return 0, 1
	}
	return low, high
}
