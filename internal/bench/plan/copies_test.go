package plan_test

import (
	"math"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

// copies makes a campaign one of copies.
func copies(c record.Campaign) record.Campaign {
	c.SizeBytes, c.Rounds = 1<<20, 1
	return c
}

// next is the next copy of a plan.
func next(p plan.Plan) (record.Trial, bool) {
	step, ok := p.Next(time.Second, record.Slices{})
	if !ok {
		return record.Trial{}, false
	}
	return step.Trials[0], true
}

func TestExhaustiveIsLiteral(t *testing.T) {
	c := copies(whole(1))
	c.Rounds = 2
	_, f, _ := run(t, &benchtest.Machine{}, c, roomy)
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
	p, f, _ := run(t, &benchtest.Machine{Fail: 1}, copies(whole(1)), roomy)
	if p.End() != plan.EndFailures || len(f.Samples) > 10 {
		t.Errorf("ended %q after %d trials", p.End(), len(f.Samples))
	}
}

func TestFailuresAreRetriedAtTheEndOfTheRound(t *testing.T) {
	_, f, _ := run(t, &benchtest.Machine{Fail: 0.1}, copies(whole(3)), roomy)
	ok := map[alg.Suite]bool{}
	for trial, sample := range f.Results() {
		if sample.Outcome == record.OK {
			ok[trial.Asked()] = true
		}
	}
	if len(ok) < 2230 {
		t.Errorf("%d combinations have a result, want nearly 2240", len(ok))
	}
}

func TestResumeGoesOnWhereItStopped(t *testing.T) {
	c := copies(whole(5))
	_, all, _ := run(t, &benchtest.Machine{}, c, roomy)
	cut := &record.File{Trials: map[int]record.Trial{}, Samples: all.Samples[:100]}
	for _, sample := range cut.Samples {
		cut.Trials[sample.Trial] = all.Trials[sample.Trial]
	}
	second := planned(t, c, roomy)
	(&benchtest.Machine{}).Resume(cut, second)
	if got, want := len(cut.Samples)-100, len(all.Samples)-100; got != want {
		t.Errorf("%d trials after resuming, want %d", got, want)
	}
}

func TestReplayedFailuresAreTriedAgain(t *testing.T) {
	c := copies(few(7))
	c.Rounds = 2
	first, second := planned(t, c, roomy), planned(t, c, roomy)
	tried := map[alg.Suite]int{}
	for trial, ok := next(first); ok; trial, ok = next(first) {
		broken := record.Sample{Outcome: record.Broken}
		first.Observe(trial, broken)
		second.Observe(trial, broken)
		tried[trial.Want]++
	}
	if first.End() != plan.EndFailures {
		t.Fatalf("ended %q", first.End())
	}
	m := &benchtest.Machine{}
	for trial, ok := next(second); ok; trial, ok = next(second) {
		second.Observe(trial, m.Run(trial))
		if delete(tried, trial.Want); len(tried) == 0 {
			break
		}
	}
	if len(tried) > 0 || second.Progress().Failed > 0 {
		t.Errorf("not tried again: %v; %d failed", tried, second.Progress().Failed)
	}
}

// A refusal comes before any algorithm is named: no cell is to blame for it.
func TestRefusalsGiveNoCellUp(t *testing.T) {
	for name, sample := range map[string]record.Sample{
		"refused":   {Outcome: record.Refused},
		"timed out": {Outcome: record.TimedOut},
	} {
		p := planned(t, copies(few(8)), roomy)
		m := &benchtest.Machine{}
		refusals := map[alg.Suite]int{}
		for trial, ok := next(p); ok; trial, ok = next(p) {
			if refusals[trial.Want] < 6 && (len(refusals) < 2 || refusals[trial.Want] > 0) {
				refusals[trial.Want]++
				p.Observe(trial, sample)
				continue
			}
			p.Observe(trial, m.Run(trial))
		}
		if p.End() != plan.EndComplete || p.Progress().Failed > 0 {
			t.Errorf("%s: ended %q, %d failed", name, p.End(), p.Progress().Failed)
		}
	}
}

// A host that refuses everything is given up soon all the same.
func TestNothingButRefusals(t *testing.T) {
	p := planned(t, copies(whole(9)), roomy)
	tries := 0
	for trial, ok := next(p); ok; trial, ok = next(p) {
		p.Observe(trial, record.Sample{Outcome: record.Refused})
		tries++
	}
	if p.End() != plan.EndFailures || tries > 10 || p.Progress().Failed > 0 {
		t.Errorf("ended %q after %d refusals, blamed %d", p.End(), tries, p.Progress().Failed)
	}
}

// However much is asked for, a plan says how long it takes.
func TestEstimatesSaturate(t *testing.T) {
	rounds, large := whole(11), whole(11)
	rounds.Rounds = math.MaxInt
	large.Rounds, large.SizeBytes = math.MaxInt, math.MaxInt64
	for name, c := range map[string]record.Campaign{"copies": large, "rounds": rounds} {
		p := planned(t, c, roomy)
		p.Next(0, record.Slices{})
		if p.Estimate() != math.MaxInt64 || p.Progress().Remaining != math.MaxInt64 {
			t.Errorf("%s: estimate %v, remaining %v", name, p.Estimate(), p.Progress().Remaining)
		}
	}
}
