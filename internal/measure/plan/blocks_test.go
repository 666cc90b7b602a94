package plan_test

import (
	"math"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/lab"
	"sshpace/internal/measure/model/sim"
	"sshpace/internal/measure/plan"
	"sshpace/internal/record"
)

var _ lab.Planner = (*plan.Plan)(nil)

func spec(seed uint64) plan.Spec {
	return plan.Spec{Space: alg.Fold(sim.Offer()), Seed: seed}
}

func collect(t *testing.T, m *sim.Machine, p *plan.Plan, err error) (*record.File, time.Duration) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	return m.Collect(record.Campaign{Offer: sim.Offer(), Target: "simulated"}, plan.NewSingles(p, 1))
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
		case trial.Workload == record.Login:
			logins[trial.Want.Kex]++
		case trial.Role == record.RoleCell:
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
		if trial := f.Trials[sample.Trial]; sample.Outcome == record.OK && trial.Workload == record.Transfer {
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

func TestReplayedFailuresAreTriedAgain(t *testing.T) {
	for name, design := range map[string]func(plan.Spec) (*plan.Plan, error){"blocks": plan.Blocks, "sequential": plan.Sequential} {
		s := spec(7)
		s.Space = alg.Fold(alg.Offer{Ciphers: []string{"aes128-gcm@openssh.com"}, Kex: []string{"curve25519-sha256", "ecdh-sha2-nistp256"}})
		s.Rounds, s.Budget = 2, time.Minute
		first, err := design(s)
		if err != nil {
			t.Fatal(err)
		}
		second, _ := design(s)
		tried := map[alg.Suite]int{}
		for trial, ok := first.Next(0); ok; trial, ok = first.Next(time.Second) {
			broken := record.Sample{Outcome: record.Broken}
			first.Observe(trial, broken)
			second.Observe(trial, broken)
			tried[trial.Want]++
		}
		if first.End() != plan.EndFailures {
			t.Fatalf("%s: ended %q", name, first.End())
		}
		m := &sim.Machine{}
		for trial, ok := second.Next(time.Second); ok; trial, ok = second.Next(time.Second) {
			second.Observe(trial, m.Run(trial))
			if delete(tried, trial.Want); len(tried) == 0 {
				break
			}
		}
		if len(tried) > 0 || len(second.Failed()) > 0 {
			t.Errorf("%s: not tried again: %v; failed: %v", name, tried, second.Failed())
		}
	}
}

// A refusal comes before any algorithm is named: no cell is to blame for it.
func TestRefusalsGiveNoCellUp(t *testing.T) {
	for name, sample := range map[string]record.Sample{
		"refused":   {Outcome: record.Refused},
		"timed out": {Outcome: record.TimedOut},
	} {
		s := spec(8)
		s.Rounds = 1
		p, err := plan.Blocks(s)
		if err != nil {
			t.Fatal(err)
		}
		m := &sim.Machine{}
		refusals := map[alg.Suite]int{}
		for trial, ok := p.Next(0); ok; trial, ok = p.Next(time.Second) {
			if trial.Workload == record.Login && refusals[trial.Want] < 12 && len(refusals) < 2 {
				refusals[trial.Want]++
				p.Observe(trial, sample)
				continue
			}
			p.Observe(trial, m.Run(trial))
		}
		if p.End() != plan.EndComplete || len(p.Failed()) > 0 {
			t.Errorf("%s: ended %q, failed %v", name, p.End(), p.Failed())
		}
	}
}

// A host that refuses everything is given up soon all the same.
func TestNothingButRefusals(t *testing.T) {
	p, err := plan.Blocks(spec(9))
	if err != nil {
		t.Fatal(err)
	}
	tries := 0
	for trial, ok := p.Next(0); ok; trial, ok = p.Next(time.Second) {
		p.Observe(trial, record.Sample{Outcome: record.Refused})
		tries++
	}
	if p.End() != plan.EndFailures || tries > 10 || len(p.Failed()) > 0 {
		t.Errorf("ended %q after %d refusals, blamed %v", p.End(), tries, p.Failed())
	}
}

// A plan of which one half never worked did not end well.
func TestNoTransferWorked(t *testing.T) {
	s := spec(10)
	s.Rounds = 1
	p, err := plan.Blocks(s)
	if err != nil {
		t.Fatal(err)
	}
	m := &sim.Machine{}
	for trial, ok := p.Next(0); ok; trial, ok = p.Next(time.Second) {
		sample := m.Run(trial)
		if trial.Workload == record.Transfer {
			sample = record.Sample{Outcome: record.Broken}
		}
		p.Observe(trial, sample)
	}
	if w, barren := p.Barren(); p.End() != plan.EndFailures || !barren || w != record.Transfer {
		t.Errorf("ended %q, barren %v %q", p.End(), barren, w)
	}
}

// However much is asked for, a plan says how long it takes.
func TestEstimatesSaturate(t *testing.T) {
	many := spec(11)
	many.Rounds = math.MaxInt
	large := spec(11)
	large.Runs, large.SizeBytes = math.MaxInt, math.MaxInt64
	for name, make := range map[string]func() (*plan.Plan, error){
		"blocks": func() (*plan.Plan, error) { return plan.Blocks(many) },
		"copies": func() (*plan.Plan, error) { return plan.Exhaustive(large) },
	} {
		p, err := make()
		if err != nil {
			t.Fatal(err)
		}
		p.Next(0)
		if p.Estimate() != math.MaxInt64 || p.Progress().Remaining != math.MaxInt64 {
			t.Errorf("%s: estimate %v, remaining %v", name, p.Estimate(), p.Progress().Remaining)
		}
	}
}
