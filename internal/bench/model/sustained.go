package model

import (
	"maps"
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

// lengthened is what long slices of one kind take more or less than brief ones.
type lengthened struct {
	relative []float64 // of each
	ns       float64   // per byte, summed by the reciprocal variance of each
	weight   float64   // sum of these
}

func (k *lengthened) add(l located) {
	cost := math.Exp(l.Log)
	for _, log := range l.steady {
		more := math.Exp(log)/cost - 1
		k.relative = append(k.relative, more)
		k.ns, k.weight = k.ns+more/cost, k.weight+1/(cost*cost)
	}
}

// sustain moves costs from those of slices of a millisecond to those of long transfers, whose
// caches are warm and whose buffers are full, and that have no core to themselves. What the steady
// parts of long slices take more or less, in ns a byte, is a random effect of the mode of the cipher.
// Nothing moves where there are none.
func sustain(connections []*connection, all []located) {
	kinds := map[string]*lengthened{}
	for i, c := range connections {
		key := longer(c.trial.Cell())
		if kinds[key] == nil {
			kinds[key] = &lengthened{}
		}
		kinds[key].add(all[i])
	}
	more := effectsOf(kinds)
	for i, c := range connections {
		if l, e := &all[i], more[longer(c.trial.Cell())]; l.N > 0 {
			cost := math.Exp(l.Log)
			sustained := math.Max(cost+e.ns, cost/2)
			l.Log, l.moved = math.Log(sustained), e.err/sustained
		}
	}
}

// effect is in ns per byte, with its standard error.
type effect struct{ ns, err float64 }

func effectsOf(kinds map[string]*lengthened) map[string]effect {
	keys := slices.Sorted(maps.Keys(kinds))
	var relative [][]float64
	for _, key := range keys {
		relative = append(relative, kinds[key].relative)
	}
	own, degrees := stats.PooledDeviation(relative)
	deviation, _ := stats.Shrink(own, degrees, usualSteady, steadyWorth)
	means, variances := make([]float64, len(keys)), make([]float64, len(keys))
	for i, key := range keys {
		k := kinds[key]
		if variances[i] = deviation * deviation / k.weight; k.weight > 0 {
			means[i] = k.ns / k.weight
		}
	}
	out := map[string]effect{}
	effects, errs := stats.RandomEffects(means, variances)
	for i, key := range keys {
		out[key] = effect{effects[i], errs[i]}
	}
	return out
}
