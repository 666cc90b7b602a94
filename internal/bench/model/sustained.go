package model

import (
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// What one long slice shows varies by about so much; the guess counts as a few of them.
const (
	usualSteady = 0.05
	steadyWorth = 4
)

// longer names what long transfers differ from slices by together. Only chained blocks differ from
// all else: each waits for the one before it (CBC, NIST SP 800-38A), and so for whatever shares the
// core, by a tenth; differences between other ciphers are smaller than one run can show.
func longer(cell record.Cell) string {
	if strings.HasSuffix(cell.Suite.Cipher, "-cbc") {
		return "cbc " + string(cell.Direction)
	}
	return string(cell.Direction)
}

// sustain moves costs from those of slices of a millisecond to those of long transfers, whose
// caches are warm and whose buffers are full, and that have no core to themselves: by what the steady
// parts of long slices take more or less, in ns a byte, on the mean of all of a kind. Nothing moves
// where there are none.
func sustain(connections []*Transfer, q quantity) {
	var kinds []string
	var groups [][]*Transfer
	for _, c := range connections {
		kind := longer(c.Trial.Cell())
		k := slices.Index(kinds, kind)
		if k < 0 {
			k, kinds, groups = len(kinds), append(kinds, kind), append(groups, nil)
		}
		groups[k] = append(groups[k], c)
	}
	more, errs := moreInLong(groups, q)
	for k, group := range groups {
		for _, c := range group {
			if l := &c.of[q]; l.N > 0 {
				cost := math.Exp(l.Log)
				sustained := math.Max(cost+more[k], cost/2)
				l.Log, l.moved = math.Log(sustained), errs[k]/sustained
			}
		}
	}
}

// moreInLong is what connections of each kind take more in long slices than in brief ones, in ns a
// byte, with its standard error: the deviation of one slice is relative to what it costs.
func moreInLong(kinds [][]*Transfer, q quantity) (more, errs []float64) {
	more, errs = make([]float64, len(kinds)), make([]float64, len(kinds))
	relative, weights := make([][]float64, len(kinds)), make([]float64, len(kinds))
	for k, kind := range kinds {
		for _, c := range kind {
			cost := math.Exp(c.of[q].Log)
			for _, log := range c.of[q].steady {
				off := math.Exp(log)/cost - 1
				relative[k] = append(relative[k], off)
				more[k], weights[k] = more[k]+off/cost, weights[k]+1/(cost*cost)
			}
		}
	}
	own, degrees := stats.PooledDeviation(relative)
	deviation, _ := stats.Shrink(own, degrees, usualSteady, steadyWorth)
	for k, weight := range weights {
		if weight > 0 {
			more[k], errs[k] = more[k]/weight, deviation/math.Sqrt(weight)
		}
	}
	return more, errs
}
