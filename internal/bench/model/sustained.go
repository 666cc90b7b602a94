package model

import (
	"math"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// The variation of one long slice; the guess counts as a few of them.
const (
	usualSteady = 0.05
	steadyWorth = 4
)

// sustain moves costs from those of slices of a millisecond to those of long transfers, whose
// caches are warm and whose buffers are full, and that share their cores: by how much more or less
// the steady parts of long slices cost, in ns a byte, on average over a direction. Nothing moves
// where there are none.
func sustain(connections []*Transfer, q quantity) {
	directions := map[record.Direction][]*Transfer{}
	for _, c := range connections {
		directions[c.Trial.Direction] = append(directions[c.Trial.Direction], c)
	}
	for _, group := range directions {
		more, err := moreInLong(group, q)
		for _, c := range group {
			if l := &c.of[q]; l.N > 0 {
				cost := math.Exp(l.Log)
				sustained := math.Max(cost+more, cost/2)
				l.Log, l.moved = math.Log(sustained), err/sustained
			}
		}
	}
}

// moreInLong returns how much more connections cost in long slices than in brief ones, in ns a
// byte, with its standard error: the deviation of one slice is relative to its cost.
func moreInLong(connections []*Transfer, q quantity) (more, err float64) {
	var relative []float64
	weight := 0.0
	for _, c := range connections {
		cost := math.Exp(c.of[q].Log)
		for _, log := range c.of[q].steady {
			off := math.Exp(log)/cost - 1
			relative = append(relative, off)
			more, weight = more+off/cost, weight+1/(cost*cost)
		}
	}
	if weight == 0 {
		return 0, 0
	}
	own, degrees := stats.PooledDeviation([][]float64{relative})
	deviation, _ := stats.Shrink(own, degrees, usualSteady, steadyWorth)
	return more / weight, deviation / math.Sqrt(weight)
}
