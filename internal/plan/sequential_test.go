package plan_test

import (
	"math"
	"testing"
	"time"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/model/sim"
	"sshpace/internal/plan"
	"sshpace/internal/rank"
	"sshpace/internal/stats"
)

// noisy is the machine that was observed: 3 % per segment, 1 % per connection,
// cells 1.4 % off the additive model, wall time 6 % worse.
func noisy(seed uint64) *sim.Machine {
	return &sim.Machine{Seed: seed, Noise: 0.03, WallNoise: 0.06, Connection: 0.01, BlockDrift: 0.01, Interaction: 0.014}
}

func sequential(t *testing.T, m *sim.Machine, s plan.Spec) (*bench.File, *rank.Ranking, *plan.Plan) {
	t.Helper()
	p, err := plan.Sequential(s)
	f, _ := collect(t, m, p, err)
	r, err := rank.Of(f, rank.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f, r, p
}

func budget(seed uint64, d time.Duration) plan.Spec {
	s := spec(seed)
	s.Budget, s.Cores = d, 2
	return s
}

func TestQuality(t *testing.T) {
	for seed := range uint64(8) {
		m := noisy(seed)
		f, r, p := sequential(t, m, budget(seed, 60*time.Second))
		measured := 0
		for _, c := range r.Bulk {
			if c.Basis == rank.Measured {
				measured++
			}
		}
		var errs []float64
		hits := 0
		for _, c := range r.Bulk {
			truth := m.Client(c.Suite)
			errs = append(errs, math.Abs(c.Client.Value/truth-1))
			if c.Client.Lo <= truth && truth <= c.Client.Hi {
				hits++
			}
		}
		t.Logf("seed %d: %d trials, %d measured, holdout %.1f %% p95 %.1f %%, noise %.1f/%.1f %%, err median %.2f %% max %.2f %%, cover %d, int %.2f, ended %s, %d groups %s, by %s",
			seed, len(f.Samples), measured, r.Model.HoldoutError, r.Model.HoldoutP95, r.Noise.Throughput, r.Noise.Cost, 100*stats.Median(errs), 100*stats.Quantile(errs, 1), hits, r.Model.Interaction, p.End(),
			len(r.Kex), r.Bulk[len(r.Bulk)-1].Group, r.By)
	}
}

func tau(a, b *rank.Ranking) float64 {
	place := map[alg.Suite]int{}
	for _, c := range a.Bulk {
		place[c.Suite] = c.Rank
	}
	var xs, ys []float64
	for _, c := range b.Bulk {
		if p, ok := place[c.Suite]; ok {
			xs, ys = append(xs, float64(p)), append(ys, float64(c.Rank))
		}
	}
	return stats.KendallTau(xs, ys)
}

func TestTwoSeedsAgree(t *testing.T) {
	for seed := range uint64(5) {
		_, a, _ := sequential(t, noisy(seed), budget(seed, 60*time.Second))
		_, b, _ := sequential(t, noisy(seed+100), budget(seed+100, 60*time.Second))
		busy := noisy(seed + 200)
		busy.Busy = 1
		_, c, _ := sequential(t, busy, budget(seed+200, 60*time.Second))
		t.Logf("tau %.3f, busy %.3f %s %s %s", tau(a, b), tau(a, c), a.By, b.By, c.By)
	}
}
