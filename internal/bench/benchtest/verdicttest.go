package benchtest

import (
	"math"
	"reflect"
	"testing"
	"time"

	"sshpace/internal/base/alg"

	"sshpace/internal/bench/plan"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// Noisy returns a machine with some noise, and no neighbors.
func Noisy(seed uint64) *Machine {
	return &Machine{Seed: seed, Noise: 0.015, WallNoise: 0.06, Connection: 0.02, RoundDrift: 0.01, Interaction: 0.010}
}

// Crowded returns a machine whose other guests slow it by a tenth, varying over time.
func Crowded(seed uint64) *Machine {
	return &Machine{
		Seed: seed, Noise: 0.05, WallNoise: 0.05, Connection: 0.003, Interaction: 0.005,
		Neighbors: Neighbors{Share: 0.3, Slow: 0.35, Drift: 0.6},
	}
}

// Simulate lets all cells take turns for a simulated time, and has logins.
func Simulate(t testing.TB, m *Machine, length time.Duration) *record.File {
	t.Helper()
	c := record.Campaign{Offer: Offer(), Target: "simulated", Seed: m.Seed}
	f := m.Sit(c, Sitting{
		Cells: alg.Fold(Offer()).Bulk, Length: length, Slice: 2 * time.Millisecond, Long: 2, Controls: 10, Holdouts: 12, ExcessNS: 70e3, Logins: 5,
	})
	f.End.Why = "budget"
	return f
}

// Copies copies 64 MiB with every combination.
func Copies(t testing.TB, m *Machine) *record.File {
	t.Helper()
	c := record.Campaign{Offer: Offer(), Target: "simulated", Seed: m.Seed, SizeBytes: 64 << 20, Rounds: 1}
	p, err := plan.New(c, plan.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	f, _ := m.Collect(c, p)
	return f
}

// Sit lets all cells take turns for a simulated time.
func Sit(t testing.TB, m *Machine, length time.Duration) *record.File {
	t.Helper()
	c := record.Campaign{Target: "loopback", Engine: "openssh", Server: "openssh", Offer: Offer(), Directions: []record.Direction{record.Upload}}
	return m.Sit(c, Sitting{
		Cells: alg.Fold(Offer()).Bulk, Length: length, Slice: 2 * time.Millisecond, Long: 6, Controls: 10, Holdouts: 12, ExcessNS: 70e3,
	})
}

// Of ranks a file and checks that every number is finite.
func Of(t testing.TB, f *record.File, by rank.By) *rank.Ranking {
	t.Helper()
	r, err := rank.Of(f, by)
	if err != nil {
		t.Fatal(err)
	}
	Finite(t, r)
	return r
}

// Finite fails if any number in a value is NaN or infinite.
func Finite(t testing.TB, v any) {
	t.Helper()
	finite(t, reflect.ValueOf(v))
}

func finite(t testing.TB, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			finite(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			finite(t, v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			finite(t, v.Index(i))
		}
	case reflect.Float64:
		if f := v.Float(); math.IsNaN(f) || math.IsInf(f, 0) {
			t.Errorf("a number is %v", f)
		}
	}
}
