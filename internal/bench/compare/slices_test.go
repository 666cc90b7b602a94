package compare_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
)

// related compares so much time of slices of two machines.
func related(t *testing.T, length time.Duration, a, b *benchtest.Machine) *compare.Comparison {
	t.Helper()
	var inputs []compare.Input
	for i, m := range []*benchtest.Machine{a, b} {
		r := benchtest.Of(t, benchtest.Sit(t, m, length), rank.Auto)
		inputs = append(inputs, compare.Input{Label: string(rune('a' + i)), Ranking: r})
	}
	c, err := compare.Of(inputs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	benchtest.Finite(t, c)
	return c
}

// A cipher that costs 5 % more is found by 20 seconds of slices on machines with neighbors, in 95
// % of the tries; equal machines never differ.
func TestPlantedDifferenceInSlices(t *testing.T) {
	const tries = 4
	found, falsely, first := 0, 0, seedtest.Of(t)
	for seed := first; seed < first+tries; seed++ {
		c := related(t, 20*time.Second, benchtest.Crowded(seed), slower(benchtest.Crowded(1000+seed), "aes128-ctr", 1.05))
		for _, g := range c.In(compare.Ciphers) {
			if g.Name == "aes128-ctr" && g.Ratios[0].Verdict == stats.Worse {
				found++
			}
		}
		if len(failing(related(t, 20*time.Second, benchtest.Crowded(2000+seed), benchtest.Crowded(3000+seed)))) > 0 {
			falsely++
		}
	}
	if found < tries-1 || falsely > 0 {
		t.Errorf("5 %% found in %d of %d comparisons, equal machines differ in %d", found, tries, falsely)
	}
}

// felt is a machine whose other guests are there for a part of the time, and felt by some ciphers
// three times as much as by others.
func felt(seed uint64, share float64) *benchtest.Machine {
	m := benchtest.Crowded(seed)
	m.Noise, m.Neighbors = 0.03, benchtest.Neighbors{Share: share, Slow: 0.5, Uneven: 0.5}
	return m
}

// A machine that was left alone for one run, and not for the other, has not changed: neither is a
// cipher slower there, nor do letters contradict each other. What did change is found.
func TestNeighborsAreNoChange(t *testing.T) {
	first := seedtest.Of(t)
	for seed := first; seed < first+2; seed++ {
		quiet, busy := felt(seed, 0.02), felt(1000+seed, 0.85)
		c := related(t, time.Minute, quiet, busy)
		if worst := failing(c); len(worst) > 0 {
			t.Errorf("seed %d: %v", seed, worst)
		}
		if n := contradictions(c.Inputs[0].Ranking, c.Inputs[1].Ranking); n > 0 {
			t.Errorf("seed %d: %d pairs of cells have opposite letters", seed, n)
		}
		if !slices.ContainsFunc(c.Warnings, func(w rank.Warning) bool { return w.Name == "guests" }) {
			t.Errorf("seed %d: it is not said that other guests slowed one run", seed)
		}
		changed := related(t, time.Minute, felt(seed, 0.02), slower(felt(1000+seed, 0.85), "aes128-ctr", 1.3))
		if worst := failing(changed); !strings.Contains(strings.Join(worst, "\n"), "aes128-ctr") {
			t.Errorf("seed %d: a cipher that costs 30 %% more is not found: %v", seed, worst)
		}
	}
}

// contradictions are pairs of cells with different letters in both rankings, in opposite order.
func contradictions(a, b *rank.Ranking) (n int) {
	type place struct {
		rank  int
		group string
	}
	places := map[alg.Suite]place{}
	for _, c := range b.Bulk {
		places[c.Suite] = place{c.Rank, c.Group}
	}
	for i, x := range a.Bulk {
		for _, y := range a.Bulk[i+1:] {
			first, second := places[x.Suite], places[y.Suite]
			if x.Group != y.Group && first.group != second.group && first.rank > second.rank {
				n++
			}
		}
	}
	return n
}
