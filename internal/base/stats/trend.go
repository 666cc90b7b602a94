package stats

import "math"

// KendallTau returns the rank correlation τ-b of two rankings of the same things, from -1
// (reversed) to 1 (same order), with ties counted for neither side (Kendall, Biometrika 33, 1945).
// It is 0 where one side is all ties. The slices have equal lengths.
func KendallTau(xs, ys []float64) float64 {
	agree, onlyX, onlyY := 0.0, 0.0, 0.0
	for i := range xs {
		for j := range i {
			dx, dy := sign(xs[i]-xs[j]), sign(ys[i]-ys[j])
			agree += dx * dy
			onlyX += dx * dx
			onlyY += dy * dy
		}
	}
	if onlyX == 0 || onlyY == 0 {
		return 0
	}
	return agree / math.Sqrt(onlyX*onlyY)
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	}
	return 0
}
