package compare_test

import (
	"testing"
	"time"

	"sshpace/internal/measure/model/sim"
	"sshpace/internal/verdict/compare"
	"sshpace/internal/verdict/rank"
	"sshpace/internal/verdict/verdicttest"
)

// related compares 20 seconds of slices of two machines.
func related(t *testing.T, a, b *sim.Machine) *compare.Comparison {
	t.Helper()
	var inputs []compare.Input
	for i, m := range []*sim.Machine{a, b} {
		r := verdicttest.Of(t, verdicttest.Sit(t, m, 20*time.Second), rank.Options{})
		inputs = append(inputs, compare.Input{Label: string(rune('a' + i)), Ranking: r})
	}
	c, err := compare.Of(inputs, compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	verdicttest.Finite(t, c)
	return c
}

// A cipher that costs 5 % more is found by 20 seconds of slices on machines with
// neighbours, in 95 % of the tries; equal machines never differ.
func TestPlantedDifferenceInSlices(t *testing.T) {
	const tries = 40
	found, falsely := 0, 0
	for seed := range uint64(tries) {
		c := related(t, verdicttest.Neighbours(seed), slower(verdicttest.Neighbours(1000+seed), "aes128-ctr", 1.05))
		for _, g := range c.Ciphers {
			if g.Name == "aes128-ctr" && g.Ratios[0].Verdict == compare.Slower {
				found++
			}
		}
		if len(related(t, verdicttest.Neighbours(2000+seed), verdicttest.Neighbours(3000+seed)).Worst(5)) > 0 {
			falsely++
		}
	}
	if found < tries*95/100 || falsely > 0 {
		t.Errorf("5 %% found in %d of %d comparisons, equal machines differ in %d", found, tries, falsely)
	}
}
