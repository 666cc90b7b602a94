package plan_test

import (
	"errors"
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

var roomy = plan.Environment{Cores: 2, Capacity: 400}

// whole is a campaign of everything.
func whole(seed uint64) record.Campaign {
	return record.Campaign{Offer: benchtest.Offer(), Seed: seed, Target: "simulated"}
}

// few is a campaign of four combinations.
func few(seed uint64) record.Campaign {
	c := whole(seed)
	c.Offer = alg.Offer{Ciphers: []string{"aes128-ctr", "3des-cbc"}, MACs: []string{"hmac-sha1"}, Kex: []string{"curve25519-sha256", "ecdh-sha2-nistp256"}}
	return c
}

// planned is the plan of a campaign.
func planned(t *testing.T, c record.Campaign, env plan.Environment) plan.Plan {
	t.Helper()
	p, err := plan.New(c, env)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run simulates a whole run.
func run(t *testing.T, m *benchtest.Machine, c record.Campaign, env plan.Environment) (plan.Plan, *record.File, time.Duration) {
	t.Helper()
	p := planned(t, c, env)
	f, elapsed := m.Collect(c, p)
	return p, f, elapsed
}

// turnsOf counts the turns of each cell.
func turnsOf(f *record.File) map[record.Cell]int {
	turns := map[record.Cell]int{}
	for _, batch := range f.Slices {
		for _, s := range batch.Slices {
			if trial := f.Trials[s.Trial]; trial.Workload == record.Sitting {
				turns[trial.Cell()]++
			}
		}
	}
	return turns
}

func TestSittingMeasuresEverything(t *testing.T) {
	c := whole(1)
	c.BudgetNS = time.Minute
	p, f, elapsed := run(t, &benchtest.Machine{Seed: 1, Noise: 0.1}, c, roomy)
	turns := turnsOf(f)
	if len(turns) != 115 {
		t.Errorf("%d cells have turns, want 115", len(turns))
	}
	for cell, n := range turns {
		if n < 20 {
			t.Errorf("%v has %d turns", cell, n)
		}
	}
	roles, logins := map[record.Role]int{}, map[string]int{}
	for trial := range f.Results() {
		switch trial.Workload {
		case record.Sitting:
			roles[trial.Role]++
		case record.Login:
			logins[trial.Want.Kex]++
		}
	}
	if roles[record.RoleHoldout] != 36 || roles[record.RoleControl] != 18 || roles[record.RoleReference] != 1 {
		t.Errorf("roles %v", roles)
	}
	for kex, n := range logins {
		if n < 5 {
			t.Errorf("%s has %d logins", kex, n)
		}
	}
	if len(logins) != 12 || p.End() != plan.EndBudget || elapsed < time.Minute || elapsed > 61*time.Second {
		t.Errorf("%d key exchanges, ended %q after %v", len(logins), p.End(), elapsed)
	}
}

// A complete ranking is there within seconds, long before the budget ends.
func TestFirstRankingIsEarly(t *testing.T) {
	c := whole(2)
	c.BudgetNS = 10 * time.Second
	p, _, _ := run(t, &benchtest.Machine{Seed: 2, Noise: 0.1}, c, roomy)
	if progress := p.Progress(); !progress.Ranked {
		t.Errorf("%+v", progress)
	}
}

// A third of the time is for throughput, shared by all ciphers: four times as much for each of
// those that are likely to lead.
func TestSteadyTurns(t *testing.T) {
	c := whole(5)
	c.BudgetNS = time.Minute
	_, f, _ := run(t, &benchtest.Machine{Seed: 5, Noise: 0.1}, c, roomy)
	var all, ours time.Duration
	of := map[bool]map[string]int{false: {}, true: {}} // of those that need no MAC, the likely leaders
	for _, batch := range f.Slices {
		for _, s := range batch.Slices {
			all += s.WallNS
			if s.Steady != nil {
				ours += s.WallNS
				want := f.Trials[s.Trial].Cell().Suite
				of[want.MAC == ""][want.Cipher]++
			}
		}
	}
	if share := float64(ours) / float64(all); share < 0.2 || share > 0.35 {
		t.Errorf("%.0f %% of the time for throughput", 100*share)
	}
	leaders, others := slices.Collect(maps.Values(of[true])), slices.Collect(maps.Values(of[false]))
	if len(leaders) != 3 || len(others) != 7 || slices.Max(others)-slices.Min(others) > 1 ||
		slices.Min(leaders) < 4*slices.Min(others)-4 || slices.Max(leaders) > 4*slices.Max(others)+4 {
		t.Errorf("turns for throughput: %v", of)
	}
}

// Where there is not room for all connections at once, likely leaders have no more than others.
func TestFurtherConnectionsNeedRoom(t *testing.T) {
	c := whole(6)
	c.BudgetNS = time.Minute
	env := roomy
	env.Capacity = 60
	_, f, _ := run(t, &benchtest.Machine{Seed: 6, Noise: 0.1}, c, env)
	of := map[record.Cell]int{}
	for _, trial := range f.Trials {
		if trial.Workload == record.Sitting && trial.Role != record.RoleReference {
			of[trial.Cell()]++
		}
	}
	for cell, n := range of {
		if n > 2 {
			t.Errorf("%v has %d connections", cell, n)
		}
	}
}

// Both halves of a pair are second connections of one cell, and the extra turns go to leaders
// rather than to the last.
func TestTurnsGoWhereTheyHelp(t *testing.T) {
	c := whole(3)
	c.BudgetNS = time.Minute
	c.Present = alg.Suite{Cipher: "3des-cbc", MAC: "hmac-sha1"}
	_, f, _ := run(t, &benchtest.Machine{Seed: 3, Noise: 0.1, Interaction: 0.01}, c, roomy)
	turns := turnsOf(f)
	present := turns[record.CellOf(c.Present, record.Upload)]
	other := 0
	for _, trial := range f.Trials {
		if cell := trial.Cell(); cell.Suite.Cipher == "3des-cbc" && cell.Suite != c.Present && trial.Role == "" {
			other = max(other, turns[cell])
		}
	}
	if present <= other {
		t.Errorf("the present choice has %d turns, another slow one %d", present, other)
	}
	for _, trial := range f.Trials {
		if had := turns[trial.Cell()]; trial.Role == record.RoleHoldout && 2*had < 3*other {
			t.Errorf("%s, held out, has %d turns, others %d", trial.Cell().Suite, had, other)
		}
	}
}

// Where few connections can be open, sittings follow each other, linked by the reference cell, and
// all cells get their share.
func TestSeveralSittings(t *testing.T) {
	for name, change := range map[string]func(*record.Campaign){
		"budget": func(c *record.Campaign) { c.BudgetNS = 2 * time.Minute },
		"rounds": func(c *record.Campaign) { c.Rounds = 1 },
	} {
		c := whole(4)
		c.Directions = []record.Direction{record.Upload, record.Download}
		change(&c)
		_, f, _ := run(t, &benchtest.Machine{Seed: 4, Noise: 0.1}, c, plan.Environment{Cores: 2, Capacity: 8})
		if turns := turnsOf(f); len(turns) != 230 {
			t.Errorf("%s: %d cells have turns, want 230", name, len(turns))
		}
		reference := map[int]bool{}
		for _, batch := range f.Slices {
			for _, slice := range batch.Slices {
				if f.Trials[slice.Trial].Role == record.RoleReference {
					reference[batch.Sitting] = true
				}
			}
		}
		if last := f.Slices[len(f.Slices)-1].Sitting; last < 15 || len(reference) != last {
			t.Errorf("%s: %d sittings, the reference is in %d", name, last, len(reference))
		}
	}
}

// A connection that is lost is opened again; one that never opens is given up without spoiling the
// rest.
func TestLostConnectionsAreOpenedAgain(t *testing.T) {
	c := few(5)
	c.Rounds = 2
	p := planned(t, c, roomy)
	opened, lost, bad := map[alg.Suite]int{}, 0, 0
	turns := map[int]int{}
	for step, ok := p.Next(0, record.Slices{}); ok; step, ok = p.Next(time.Second, record.Slices{}) {
		for _, trial := range step.Trials {
			switch {
			case step.Action == plan.Open && trial.Workload == record.Sitting && trial.Want.Cipher == "3des-cbc":
				bad++
				p.Opened(trial, record.Sample{Outcome: record.Mismatched})
			case step.Action == plan.Open && trial.Workload == record.Sitting:
				opened[trial.Want.Bulk()]++
				p.Opened(trial, record.Sample{Outcome: record.OK})
			case step.Action == plan.Turn && trial.Workload == record.Sitting && lost == 0 && turns[trial.ID] == 5:
				lost = trial.ID
				p.Lost(trial)
			case step.Action == plan.Turn:
				turns[trial.ID]++
				p.Moved(step, record.Slice{Trial: trial.ID, Bytes: 1 << 19, WallNS: time.Millisecond})
			case step.Action == plan.Single:
				p.Observe(trial, (&benchtest.Machine{}).Run(trial))
			}
		}
	}
	if n := opened[alg.Suite{Cipher: "aes128-ctr", MAC: "hmac-sha1"}]; n < 2 || bad < 3 || bad > 6 || turns[lost] != 5 {
		t.Errorf("opened %v, %d attempts of the bad one, %d turns of the lost one", opened, bad, turns[lost])
	}
	if p.End() != plan.EndComplete {
		t.Errorf("ended %q", p.End())
	}
}

// A server that refuses everything is given up soon.
func TestNoConnectionOpens(t *testing.T) {
	p, f, _ := run(t, &benchtest.Machine{Fail: 1}, whole(6), roomy)
	if _, never := p.NeverWorked(); p.End() != plan.EndFailures || len(f.Samples) > 30 || never {
		t.Errorf("ended %q after %d attempts", p.End(), len(f.Samples))
	}
}

// A resumed run opens its connections again and goes on counting.
func TestSittingGoesOn(t *testing.T) {
	c := few(7)
	c.Rounds = 1
	_, f, _ := run(t, &benchtest.Machine{}, c, roomy)
	c.Rounds = 2
	p, batches, trials := planned(t, c, roomy), f.Slices, maps.Clone(f.Trials)
	(&benchtest.Machine{}).Resume(f, p)
	rest := f.Slices[len(batches):]
	if p.End() != plan.EndComplete || len(rest) == 0 || rest[0].Sitting != batches[len(batches)-1].Sitting+1 {
		t.Fatalf("ended %q, %d batches", p.End(), len(rest))
	}
	for id, trial := range trials {
		if f.Trials[id] != trial {
			t.Errorf("trial %d is there twice", id)
		}
	}
	p = planned(t, c, roomy)
	p.Begin(f)
	if _, ok := p.Next(0, record.Slices{}); ok {
		t.Errorf("goes on after all rounds; ended %q", p.End())
	}
}

// The same seed gives the same plan.
func TestSameSeedSamePlan(t *testing.T) {
	c := whole(8)
	c.BudgetNS = 5 * time.Second
	_, a, _ := run(t, &benchtest.Machine{Seed: 1, Noise: 0.1}, c, roomy)
	_, b, _ := run(t, &benchtest.Machine{Seed: 1, Noise: 0.1}, c, roomy)
	if diff := cmp.Diff(a.Slices, b.Slices); diff != "" {
		t.Error(diff)
	}
}

// A precision ends the plan as soon as all intervals are within it.
func TestEndsByPrecision(t *testing.T) {
	c := few(9)
	c.Precision, c.BudgetNS = 5, 10*time.Minute
	p, _, elapsed := run(t, &benchtest.Machine{Seed: 9, Noise: 0.03, WallNoise: 0.03}, c, roomy)
	if p.End() != plan.EndPrecision || elapsed > 5*time.Minute {
		t.Errorf("ended %q after %v", p.End(), elapsed)
	}
}

// However few algorithms are left, there is a plan for them, or a reason why not.
func TestSmallSpaces(t *testing.T) {
	for name, change := range map[string]func(*alg.Offer){
		"one AEAD cipher": func(o *alg.Offer) { o.Ciphers, o.MACs = []string{"aes128-gcm@openssh.com"}, nil },
		"one pair":        func(o *alg.Offer) { o.Ciphers, o.MACs, o.Kex = o.Ciphers[:1], o.MACs[:1], o.Kex[:1] },
		"one cipher":      func(o *alg.Offer) { o.Ciphers = o.Ciphers[:1] },
		"one MAC":         func(o *alg.Offer) { o.MACs = o.MACs[:1] },
	} {
		c := whole(10)
		change(&c.Offer)
		c.BudgetNS = 20 * time.Second
		p, f, _ := run(t, &benchtest.Machine{Seed: 10, Noise: 0.1}, c, roomy)
		if cells := len(alg.Fold(c.Offer).Bulk); p.End() != plan.EndBudget || len(turnsOf(f)) != cells {
			t.Errorf("%s: ended %q with %d cells of %d", name, p.End(), len(turnsOf(f)), cells)
		}
	}
	for name, c := range map[string]record.Campaign{
		"no key exchange": {Offer: alg.Offer{Ciphers: []string{"aes128-ctr"}, MACs: []string{"hmac-sha1"}}},
		"no MAC":          {Offer: alg.Offer{Ciphers: []string{"aes128-ctr"}, Kex: []string{"curve25519-sha256"}}},
	} {
		if _, err := plan.New(c, roomy); !errors.Is(err, plan.ErrNothing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]record.Campaign{"budget": {BudgetNS: -1}, "rounds": {Rounds: -1}, "precision": {Precision: -1}} {
		c.Offer = benchtest.Offer()
		if _, err := plan.New(c, roomy); err == nil {
			t.Errorf("a negative %s is taken", name)
		}
	}
}

// Planning costs little beside measuring.
func TestPlanningIsCheap(t *testing.T) {
	c := whole(11)
	c.BudgetNS = time.Minute
	began := cpuTime(t)
	run(t, &benchtest.Machine{Seed: 11, Noise: 0.1}, c, roomy)
	if used := cpuTime(t) - began; used > 6*time.Second { // the simulation is a part of it
		t.Errorf("planning a minute took %v of CPU time", used)
	}
}

func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
