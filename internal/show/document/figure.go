package document

import (
	"fmt"
	"math"

	"sshpace/internal/bench/rank"
)

// Figure prints three significant digits without an exponent: the one way in
// which reports for people show a number.
func Figure(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 99.95:
		return fmt.Sprintf("%.0f", v)
	case abs >= 9.995:
		return fmt.Sprintf("%.1f", v)
	case abs >= 0.9995:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}

// Percent prints a percentage in at most three characters.
func Percent(v float64) string {
	switch {
	case v >= 999:
		return "999"
	case v >= 9.95:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// Spread is the larger arm of the 95 % interval, such as "±1.9%"; "" where
// there is none.
func Spread(q *rank.Quantity) string {
	if q == nil || q.Lo == q.Hi {
		return ""
	}
	return "±" + Percent(100*q.HalfWidth()) + "%"
}

// Shown is a cell as people read it: "681 ±31%", "-" for what is unknown.
func (c Column) Shown(cell Cell) string {
	if c.Kind != Quantity {
		return cell.Text
	}
	if cell.Quantity == nil {
		return "-"
	}
	shown := Figure(cell.Quantity.Value / c.Scale)
	if spread := Spread(cell.Quantity); spread != "" {
		shown += " " + spread
	}
	return shown
}

// Heading is the head with its unit: "throughput, MB/s".
func (c Column) Heading() string {
	if c.Unit == "" {
		return c.Head
	}
	return c.Head + ", " + c.Unit
}
