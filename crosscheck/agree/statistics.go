package main

import (
	"fmt"
	"math"
	"slices"
)

// estimate is a mean of logarithms with half of its 95 % interval: all that is measured here is
// above zero, and what disturbs it multiplies.
type estimate struct {
	log, arm float64
	spread   float64 // standard deviation of one
}

func (e estimate) value() float64 { return math.Exp(e.log) }

func (e estimate) String() string {
	return fmt.Sprintf("%.3fx (%.3f-%.3f)", e.value(), math.Exp(e.log-e.arm), math.Exp(e.log+e.arm))
}

// estimateOf is the mean with Student's interval.
func estimateOf(logs []float64) estimate {
	n := float64(len(logs))
	m := mean(logs)
	squares := 0.0
	for _, x := range logs {
		squares += (x - m) * (x - m)
	}
	e := estimate{log: m, spread: math.Sqrt(squares / max(1, n-1)), arm: math.Inf(1)}
	if n > 1 {
		e.arm = student(len(logs)-1) * e.spread / math.Sqrt(n)
	}
	return e
}

// student is the 97.5 % quantile of Student's distribution. The series (Abramowitz and Stegun
// 26.7.5) is not exact enough below five degrees of freedom.
func student(degrees int) float64 {
	if few := []float64{12.706, 4.303, 3.182, 2.776}; degrees <= len(few) {
		return few[degrees-1]
	}
	const z = 1.959964
	const z3, z5, z7 = z * z * z, z * z * z * z * z, z * z * z * z * z * z * z
	n := float64(degrees)
	return z + (z3+z)/(4*n) + (5*z5+16*z3+3*z)/(96*n*n) + (3*z7+19*z5+17*z3-15*z)/(384*n*n*n)
}

func mean(all []float64) float64 {
	sum := 0.0
	for _, x := range all {
		sum += x
	}
	return sum / float64(len(all))
}

func median(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// percent is a difference of logarithms for people.
func percent(log float64) float64 { return 100 * math.Expm1(log) }
