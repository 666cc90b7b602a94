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
// caches are warm and whose buffers are full, and that have no core to themselves. What the steady
// parts of long slices take more or less, in ns a byte, is a random effect of the mode of the cipher.
// Nothing moves where there are none.
func sustain(connections []*connection, all []located) {
	var kinds []string
	of := make([]int, len(connections))
	for i, c := range connections {
		name := longer(c.trial.Cell())
		if of[i] = slices.Index(kinds, name); of[i] < 0 {
			of[i], kinds = len(kinds), append(kinds, name)
		}
	}
	more, errs := moreInLong(len(kinds), of, all)
	for i := range all {
		if l := &all[i]; l.N > 0 {
			cost := math.Exp(l.Log)
			sustained := math.Max(cost+more[of[i]], cost/2)
			l.Log, l.moved = math.Log(sustained), errs[of[i]]/sustained
		}
	}
}

// moreInLong is what connections of each kind take more in long slices than in brief ones, in ns a
// byte, with its standard error: the deviation of one slice is relative to what it costs.
func moreInLong(kinds int, of []int, all []located) (more, errs []float64) {
	relative, means, variances := make([][]float64, kinds), make([]float64, kinds), make([]float64, kinds)
	weights := make([]float64, kinds)
	for i, l := range all {
		k, cost := of[i], math.Exp(l.Log)
		for _, log := range l.steady {
			off := math.Exp(log)/cost - 1
			relative[k] = append(relative[k], off)
			means[k], weights[k] = means[k]+off/cost, weights[k]+1/(cost*cost)
		}
	}
	own, degrees := stats.PooledDeviation(relative)
	deviation, _ := stats.Shrink(own, degrees, usualSteady, steadyWorth)
	for k, weight := range weights {
		if variances[k] = deviation * deviation / weight; weight > 0 {
			means[k] /= weight
		}
	}
	return stats.RandomEffects(means, variances)
}
