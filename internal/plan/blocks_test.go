package plan_test

import (
	"testing"
	"time"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
	"sshpace/internal/lab"
	"sshpace/internal/model/sim"
	"sshpace/internal/plan"
)

var _ lab.Planner = (*plan.Plan)(nil)

func spec(seed uint64) plan.Spec {
	return plan.Spec{Space: alg.Fold(sim.Offer()), Seed: seed}
}

func collect(t *testing.T, m *sim.Machine, p *plan.Plan, err error) (*bench.File, time.Duration) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return m.Collect(bench.Campaign{Offer: sim.Offer(), Target: "simulated"}, p)
}

func TestBlocksHoldEveryCellOnce(t *testing.T) {
	s := spec(1)
	s.Rounds = 2
	p, err := plan.Blocks(s)
	f, elapsed := collect(t, &sim.Machine{}, p, err)
	count := map[[2]any]int{}
	logins := map[string]int{}
	for _, trial := range f.Trials {
		switch {
		case trial.Workload == bench.Login:
			logins[trial.Want.Kex]++
		case trial.Role == bench.RoleCell:
			count[[2]any{trial.Block, trial.Want.Bulk()}]++
		}
	}
	if len(count) != 2*115 {
		t.Errorf("%d cells in two blocks, want 230", len(count))
	}
	for cell, n := range count {
		if n != 1 {
			t.Errorf("%v is measured %d times", cell, n)
		}
	}
	for kex, n := range logins {
		if n < 5 {
			t.Errorf("%s has %d logins, want at least 5", kex, n)
		}
	}
	if len(logins) != 12 || p.End() != plan.EndComplete || elapsed > 2*time.Minute {
		t.Errorf("%d key exchanges, ended %q after %v", len(logins), p.End(), elapsed)
	}
}

func TestExhaustiveIsLiteral(t *testing.T) {
	s := spec(1)
	s.Runs, s.SizeBytes = 2, 1<<20
	p, err := plan.Exhaustive(s)
	f, _ := collect(t, &sim.Machine{}, p, err)
	asked := map[alg.Suite]int{}
	for _, trial := range f.Trials {
		suite := trial.Want
		if trial.Offered != (alg.Suite{}) {
			suite = trial.Offered
		}
		asked[suite]++
	}
	if len(asked) != 2240 || len(f.Trials) != 2*2240 {
		t.Errorf("%d combinations in %d trials, want 2240 in 4480", len(asked), len(f.Trials))
	}
}

func TestPlanEndsWhenEverythingFails(t *testing.T) {
	p, err := plan.Blocks(spec(1))
	f, _ := collect(t, &sim.Machine{Fail: 1}, p, err)
	if p.End() != plan.EndFailures || len(f.Samples) > 10 {
		t.Errorf("ended %q after %d trials", p.End(), len(f.Samples))
	}
}

func TestFailuresAreRetriedAtTheEndOfTheBlock(t *testing.T) {
	s := spec(3)
	s.Rounds = 1
	p, err := plan.Blocks(s)
	f, _ := collect(t, &sim.Machine{Fail: 0.1}, p, err)
	ok := map[alg.Suite]bool{}
	for _, sample := range f.Samples {
		if trial := f.Trials[sample.Trial]; sample.Outcome == bench.OK && trial.Workload == bench.Transfer {
			ok[trial.Want] = true
		}
	}
	if len(ok) < 114 {
		t.Errorf("%d cells have a result, want 115 (or one less, by chance)", len(ok))
	}
}

func TestResumeGoesOnWhereItStopped(t *testing.T) {
	s := spec(5)
	s.Rounds = 1
	first, err := plan.Blocks(s)
	whole, _ := collect(t, &sim.Machine{}, first, err)
	second, err := plan.Blocks(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range whole.Samples[:100] {
		second.Observe(whole.Trials[sample.Trial], sample)
	}
	rest, _ := collect(t, &sim.Machine{}, second, nil)
	if got, want := len(rest.Samples), len(whole.Samples)-100; got != want {
		t.Errorf("%d trials after resuming, want %d", got, want)
	}
}
