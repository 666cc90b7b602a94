package plan_test

import (
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/model/sim"
	"sshpace/internal/measure/plan"
	"sshpace/internal/record"
)

// run simulates a whole sitting.
func run(t *testing.T, m *sim.Machine, s plan.Spec, capacity int) (*plan.Sitting, *record.File, time.Duration) {
	t.Helper()
	p, err := plan.NewSitting(s, capacity)
	if err != nil {
		t.Fatal(err)
	}
	f, elapsed := m.Collect(record.Campaign{Offer: s.Space.Offer, Target: "simulated"}, p)
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
	s := spec(1)
	s.Budget, s.Cores, s.Overhead = time.Minute, 2, true
	p, f, elapsed := run(t, &sim.Machine{Seed: 1, Noise: 0.1}, s, 400)
	turns := turnsOf(f)
	if len(turns) != 115 {
		t.Errorf("%d cells have turns, want 115", len(turns))
	}
	for cell, n := range turns {
		if n < 20 {
			t.Errorf("%v has %d turns", cell, n)
		}
	}
	roles, logins, probes := map[record.Role]int{}, map[string]int{}, 0
	for trial := range f.Results() {
		switch trial.Workload {
		case record.Sitting:
			roles[trial.Role]++
		case record.Login:
			logins[trial.Want.Kex]++
		}
	}
	for _, trial := range f.Trials {
		if trial.Workload == record.Probe {
			probes++
		}
	}
	if roles[record.RoleHoldout] != 12 || roles[record.RoleControl] != 6 || roles[record.RoleReference] != 1 || probes != 2 {
		t.Errorf("roles %v, %d probes", roles, probes)
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
	s := spec(2)
	s.Budget = 10 * time.Second
	p, _, _ := run(t, &sim.Machine{Seed: 2, Noise: 0.1}, s, 400)
	if progress := p.Progress(); !progress.Ranked || len(progress.Leaders) != 5 {
		t.Errorf("%+v", progress)
	}
}

// Both halves of a pair are second connections of one cell, and the extra turns
// go to leaders rather than to the last.
func TestTurnsGoWhereTheyHelp(t *testing.T) {
	s := spec(3)
	s.Budget = time.Minute
	s.Present = alg.Suite{Cipher: "3des-cbc", MAC: "hmac-sha1"}
	_, f, _ := run(t, &sim.Machine{Seed: 3, Noise: 0.1, Interaction: 0.01}, s, 400)
	turns := turnsOf(f)
	present := turns[record.CellOf(s.Present, record.Upload)]
	other := turns[record.CellOf(alg.Suite{Cipher: "3des-cbc", MAC: "hmac-sha2-512"}, record.Upload)]
	if present <= other {
		t.Errorf("the present choice has %d turns, another slow one %d", present, other)
	}
}

// Where few connections can be open, sittings follow each other, linked by the
// reference cell, and all cells get their share.
func TestSeveralSittings(t *testing.T) {
	for name, change := range map[string]func(*plan.Spec){
		"budget": func(s *plan.Spec) { s.Budget = 2 * time.Minute },
		"rounds": func(s *plan.Spec) { s.Rounds = 1 },
	} {
		s := spec(4)
		s.Directions = []record.Direction{record.Upload, record.Download}
		change(&s)
		_, f, _ := run(t, &sim.Machine{Seed: 4, Noise: 0.1}, s, 8)
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

// few is a spec of four combinations.
func few(seed uint64) plan.Spec {
	offer := alg.Offer{Ciphers: []string{"aes128-ctr", "3des-cbc"}, MACs: []string{"hmac-sha1"}, Kex: []string{"curve25519-sha256", "ecdh-sha2-nistp256"}}
	return plan.Spec{Space: alg.Fold(offer), Seed: seed, SizeBytes: 1 << 20}
}

// A connection that is lost is opened again; one that never opens is given up
// without spoiling the rest.
func TestLostConnectionsAreOpenedAgain(t *testing.T) {
	s := few(5)
	s.Rounds = 2
	p, err := plan.NewSitting(s, 10)
	if err != nil {
		t.Fatal(err)
	}
	opened, lost, bad := map[alg.Suite]int{}, 0, 0
	turns := map[int]int{}
	for step, ok := p.Next(0); ok; step, ok = p.Next(time.Second) {
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
				p.Observe(trial, (&sim.Machine{}).Run(trial))
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
	p, f, _ := run(t, &sim.Machine{Fail: 1}, spec(6), 400)
	if _, barren := p.Barren(); p.End() != plan.EndFailures || len(f.Samples) > 30 || barren {
		t.Errorf("ended %q after %d attempts", p.End(), len(f.Samples))
	}
}

// A resumed run opens its connections again and goes on counting.
func TestSittingGoesOn(t *testing.T) {
	s := few(7)
	s.Rounds = 1
	_, f, _ := run(t, &sim.Machine{}, s, 10)
	s.Rounds = 2
	p, err := plan.NewSitting(s, 10)
	if err != nil {
		t.Fatal(err)
	}
	p.Replay(f)
	rest, _ := (&sim.Machine{}).Collect(f.Campaign, p)
	if p.End() != plan.EndComplete || len(rest.Slices) == 0 || rest.Slices[0].Sitting != f.Slices[len(f.Slices)-1].Sitting+1 {
		t.Fatalf("ended %q, %d batches", p.End(), len(rest.Slices))
	}
	for id := range rest.Trials {
		if _, twice := f.Trials[id]; twice {
			t.Errorf("trial %d is there twice", id)
		}
	}
	p, _ = plan.NewSitting(s, 10)
	p.Replay(f)
	p.Replay(rest)
	if _, ok := p.Next(0); ok {
		t.Errorf("goes on after all rounds; ended %q", p.End())
	}
}
