package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Reading is a value in a two-way layout: the sum of a row's part and a column's part. A cell of
// the layout may have any number of readings, or none.
type Reading struct {
	Row, Col int
	Value    float64
}

// Location estimates the middle of sorted values: their median, a quantile, a trimmed mean.
type Location func(sorted []float64) float64

// Middle returns the mean of values without a tenth of them at either end, and without at least one
// where there are five: nearly as good as the mean of normal values, and hardly moved by outliers
// (Tukey and McLaughlin, Sankhya A 25, 1963).
func Middle(sorted []float64) float64 {
	cut := len(sorted) / 10
	if len(sorted) >= 5 {
		cut = max(cut, 1)
	}
	return Mean(sorted[cut : len(sorted)-cut])
}

// QuantileOf returns the location at a quantile.
func QuantileOf(q float64) Location {
	return func(sorted []float64) float64 { return quantile(sorted, q) }
}

// Additive holds the parts of rows and columns in readings. Rows are centered: their median over
// all readings is 0, so that a column's part is the value of its readings in a usual row. NaN marks
// a row or column without a reading.
type Additive struct{ Rows, Cols []float64 }

// The end of TwoWay's iteration.
const (
	mostSweeps = 30
	still      = 1e-4 // until no column moves by more
)

// TwoWay fits reading = row + column + residual by alternation: a row is a location of the readings
// less their columns, and a column of the readings less their rows. With medians that is Tukey's
// median polish (Exploratory Data Analysis, 1977, chapter 11); with means, least squares. Columns
// are fitted last. Rows and columns are numbered from 0.
func TwoWay(readings []Reading, ofRow, ofCol Location) Additive {
	rows, cols := groups(readings, func(r Reading) int { return r.Row }), groups(readings, func(r Reading) int { return r.Col })
	a := Additive{make([]float64, len(rows)), make([]float64, len(cols))}
	scratch := make([]float64, 0, len(readings))
	polish := func(to []float64, of [][]int, location Location) (moved float64) {
		for g, members := range of {
			scratch = scratch[:0]
			for _, i := range members {
				scratch = append(scratch, a.Left(readings[i])+to[g])
			}
			if len(scratch) == 0 {
				to[g] = math.NaN()
				continue
			}
			slices.Sort(scratch)
			at := location(scratch)
			moved, to[g] = max(moved, math.Abs(at-to[g])), at
		}
		return moved
	}
	polish(a.Cols, cols, ofCol)
	for sweep, moved := 0, math.Inf(1); sweep < mostSweeps && moved > still; sweep++ {
		polish(a.Rows, rows, ofRow)
		moved = polish(a.Cols, cols, ofCol)
	}
	a.center(readings)
	return a
}

// Left returns the residual of a reading.
func (a Additive) Left(r Reading) float64 { return r.Value - a.Rows[r.Row] - a.Cols[r.Col] }

// center shifts rows and columns so that the median of rows over all readings is 0.
func (a Additive) center(readings []Reading) {
	levels := make([]float64, len(readings))
	for i, r := range readings {
		levels[i] = a.Rows[r.Row]
	}
	middle := Median(levels)
	for i := range a.Rows {
		a.Rows[i] -= middle
	}
	for i := range a.Cols {
		a.Cols[i] += middle
	}
}

// groups collects the indices of readings by their row, or by their column.
func groups(readings []Reading, of func(Reading) int) (all [][]int) {
	for i, r := range readings {
		for of(r) >= len(all) {
			all = append(all, nil)
		}
		all[of(r)] = append(all[of(r)], i)
	}
	return all
}

// Resample draws as many blocks as there are, with replacement, and returns how often each was
// drawn (Efron, Annals of Statistics 7, 1979).
func Resample(random *rand.Rand, blocks int) (times []int) {
	times = make([]int, blocks)
	for range blocks {
		times[random.IntN(blocks)]++
	}
	return times
}

// Bootstrap repeats estimates on samples drawn at random: of blocks of time, since neighbors in
// time are alike (Künsch, Annals of Statistics 17, 1989). An estimate may be NaN where a sample has
// no value for it. Each sample has its own seed, so that all estimates see the same samples.
func Bootstrap(samples int, estimates func(*rand.Rand) []float64) (draws [][]float64) {
	for seed := range uint64(samples) {
		draws = append(draws, estimates(rand.New(rand.NewPCG(seed, 1))))
	}
	return draws
}

// Beside computes, from the draws of a bootstrap, the standard error of each estimate in
// comparisons with the others: two of them compare by the errors of both. level is the standard
// error of the common movement of all; for a single estimate it is unknown. They are robust,
// because a sample may have a wild value so often that it is not trimmed.
func Beside(draws [][]float64) (errs []float64, level float64) {
	var levels []float64
	var of [][]float64
	for _, draw := range draws {
		known := slices.DeleteFunc(slices.Clone(draw), math.IsNaN)
		common, share := Mean(known), 1.0 // each is in the mean itself
		if n := float64(len(known)); n > 1 {
			levels, share = append(levels, common), math.Sqrt(n/(n-1))
		} else {
			common = 0
		}
		for i, x := range draw {
			if i == len(of) {
				of = append(of, nil)
			}
			if !math.IsNaN(x) {
				of[i] = append(of[i], (x-common)*share)
			}
		}
	}
	for _, xs := range of {
		errs = append(errs, Scale(xs, Median(xs)))
	}
	return errs, Scale(levels, Median(levels))
}
