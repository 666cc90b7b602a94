//go:build linux

package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"sshpace/internal/base/stats"
)

// TestVerdicts: figures that were planted are called what they are, and only what is worse ends
// with an error.
func TestVerdicts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	noisy := func(around, by float64) float64 { return around * (1 + by*(2*random.Float64()-1)) }
	cases := []struct {
		name  string
		now   float64
		noise float64
		exact bool
		want  stats.Verdict
	}{
		{"three times as slow", 30, 0.1, false, stats.Worse},
		{"twice as fast", 5, 0.1, false, stats.Better},
		{"the same", 10, 0.02, false, stats.Equal},
		{"one more process", 11, 0, true, stats.Worse},
		{"as many", 10, 0, true, stats.Equal},
		{"a little more", 10.2, 0, true, stats.Equal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			table := &table{subjects: []subject{{name: "s"}}}
			for range 12 {
				table.add("s", reading{value: noisy(10, c.noise), exact: c.exact}, reading{value: noisy(c.now, c.noise), exact: c.exact})
			}
			if got := table.verdicts()[0]; got != c.want {
				t.Errorf("%s, want %s: %v", got, c.want, table.rows[0].values)
			}
			if err := table.print(io.Discard); errors.Is(err, errWorse) != (c.want == stats.Worse) {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestFromNone: a count that was 0 has no ratio, and each one more is worse.
func TestFromNone(t *testing.T) {
	for now, want := range map[float64]stats.Verdict{0: stats.Equal, 1: stats.Worse} {
		table := &table{}
		table.add("login", reading{figure: "processes", exact: true}, reading{figure: "processes", value: now, exact: true})
		if got := table.verdicts()[0]; got != want {
			t.Errorf("0 and %g: %s, want %s", now, got, want)
		}
	}
}

// TestNoise: a figure that is now this, now that on both sides says nothing.
func TestNoise(t *testing.T) {
	table := &table{}
	for i := range 12 {
		values := []float64{5, 20}
		table.add("s", reading{value: values[i%2]}, reading{value: values[(i+1)%2]})
	}
	if got := table.verdicts()[0]; got != stats.NotEnough {
		t.Error(got)
	}
}
