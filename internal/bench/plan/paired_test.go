package plan_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

var chacha = alg.NewSuite("chacha20-poly1305@openssh.com", "", "curve25519-sha256")

// host is a campaign on a user's host that offers everything.
func host(seed uint64, budget time.Duration) record.Campaign {
	c := whole(seed)
	c.Server, c.Present, c.BudgetNS = record.ServerRemote, chacha, budget
	return c
}

var near = plan.Environment{Cores: 2, Capacity: 12, Login: 150 * time.Millisecond}

// Every turn of a candidate stands between two of the reference, which is what ssh uses now; all
// that the policy allows is compared within 20 seconds, by 12 logins with the one that looked.
func TestPairedTurns(t *testing.T) {
	_, f, _ := run(t, &benchtest.Machine{Seed: 1, Noise: 0.1}, host(1, 20*time.Second), near)
	refers := func(s record.Slice) bool { return f.Trials[s.Trial].Role == record.RoleReference }
	var all []record.Slice
	for _, batch := range f.Slices {
		all = append(all, batch.Slices...)
	}
	for i, s := range all {
		if refers(s) {
			if got := f.Trials[s.Trial].Cell().Suite; got != chacha.Computation() {
				t.Fatalf("the reference is %v", got)
			}
		} else if i < len(all)-1 && (i == 0 || !refers(all[i-1]) || !refers(all[i+1])) { // the budget may end behind the last
			t.Errorf("slice %d of %d stands alone", i, len(all))
		}
	}
	turns := turnsOf(f)
	for _, cipher := range []string{"aes128-gcm@openssh.com", "aes256-gcm@openssh.com"} {
		if n := turns[record.CellOf(alg.NewSuite(cipher, "", ""), record.Upload)]; n < 6 {
			t.Errorf("%s had %d turns", cipher, n)
		}
	}
	for _, mac := range []string{"hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "umac-128-etm@openssh.com"} {
		if n := turns[record.CellOf(alg.NewSuite("aes128-ctr", mac, ""), record.Upload)]; n < 3 {
			t.Errorf("aes128-ctr with %s had %d turns", mac, n)
		}
	}
	if n := len(f.Samples); n > 11 {
		t.Errorf("%d logins beside the one that looked", n)
	}
	for cell := range turns {
		if status := cell.Suite.Status(); status != alg.Strong {
			t.Errorf("%v, which is %s, was measured before all that is allowed", cell.Suite, status)
		}
	}
}

// However much time there is, only what the policy allows is compared, unless all is asked for, or
// it allows nothing.
func TestOnlyWhatIsAllowed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*record.Campaign)
		weak   bool
	}{
		"a minute":        {func(*record.Campaign) {}, false},
		"all":             {func(c *record.Campaign) { c.All = true }, true},
		"nothing allowed": {func(c *record.Campaign) { c.Offer.Ciphers = []string{"3des-cbc", "aes128-cbc"} }, true},
	} {
		campaign := host(2, time.Minute)
		c.change(&campaign)
		p, f, _ := run(t, &benchtest.Machine{Seed: 2, Noise: 0.05}, campaign, near)
		weak := false
		for cell := range turnsOf(f) {
			weak = weak || cell.Suite.Status() != alg.Strong
		}
		if progress := p.Progress(); weak != c.weak || !weak && progress.Done > progress.Total {
			t.Errorf("%s: weak ones %v, %d of %d", name, weak, progress.Done, progress.Total)
		}
	}
}

// Logins that are kept for what follows the plan are left.
func TestKeptLogins(t *testing.T) {
	few := host(7, 15*time.Second)
	few.Offer = alg.Offer{Ciphers: []string{chacha.Cipher, "aes128-gcm@openssh.com"}, Kex: []string{chacha.Kex}}
	kept := near
	kept.Kept = 4
	for env, want := range map[*plan.Environment]int{&near: 11, &kept: 7} {
		if _, f, _ := run(t, &benchtest.Machine{Seed: 7, Noise: 0.05}, few, *env); len(f.Samples) != want {
			t.Errorf("%d logins beside the one that looked, %d kept", len(f.Samples), env.Kept)
		}
	}
}

// Clear losers are left behind, and their time goes to the others.
func TestRace(t *testing.T) {
	_, f, _ := run(t, &benchtest.Machine{Seed: 2, Noise: 0.05}, host(2, 20*time.Second), near)
	turns := turnsOf(f)
	best, slow := turns[record.CellOf(alg.NewSuite("aes128-gcm@openssh.com", "", ""), record.Upload)], turns[record.CellOf(alg.NewSuite("aes256-ctr", "hmac-sha2-512-etm@openssh.com", ""), record.Upload)]
	if slow == 0 || best < 3*slow {
		t.Errorf("the best had %d turns, a slow one %d", best, slow)
	}
}

// What is not measured within the time is told by what a budget leaves room for, and one that
// leaves room for nothing is refused.
func TestShortBudget(t *testing.T) {
	_, err := plan.New(host(3, time.Second), near)
	short, ok := errors.AsType[*plan.BudgetError](err)
	if !ok || short.Least < time.Second || short.Least > 6*time.Second {
		t.Errorf("1 s: %v, %+v", err, short)
	}
	far := near
	far.Login = 3 * time.Second
	_, err = plan.New(host(3, 10*time.Second), far)
	if short, ok := errors.AsType[*plan.BudgetError](err); !ok || short.Least < 10*time.Second {
		t.Errorf("10 s where a login takes 3 s: %v, %+v", err, short)
	}
	far.Login, far.RoundTrip = time.Second, 100*time.Millisecond
	_, err = plan.New(host(3, 20*time.Second), far)
	if short, ok := errors.AsType[*plan.BudgetError](err); !ok || short.Least < 20*time.Second || short.Least > 35*time.Second {
		t.Errorf("20 s where a round trip takes 100 ms: %v, %+v", err, short)
	}
	few := host(3, 4*time.Second)
	few.Offer = alg.Offer{Ciphers: []string{chacha.Cipher, "aes128-gcm@openssh.com"}, Kex: []string{chacha.Kex}}
	if _, err := plan.New(few, near); err != nil {
		t.Errorf("two ciphers in 4 s: %v", err)
	}
}

// Where round trips are long, slices last for several of them, and fewer candidates race.
func TestFarPath(t *testing.T) {
	far := near
	far.Login, far.RoundTrip = 400*time.Millisecond, 20*time.Millisecond
	_, f, elapsed := run(t, &benchtest.Machine{Seed: 5, Noise: 0.05}, host(5, 15*time.Second), far)
	turns := turnsOf(f)
	for _, cipher := range []string{"aes128-gcm@openssh.com", "aes256-gcm@openssh.com"} {
		if n := turns[record.CellOf(alg.NewSuite(cipher, "", ""), record.Upload)]; n < 7 {
			t.Errorf("%s had %d turns", cipher, n)
		}
	}
	for _, batch := range f.Slices {
		for _, s := range batch.Slices {
			if f.Trials[s.Trial].Role == record.RoleReference && s.WallNS < 8*far.RoundTrip {
				t.Fatalf("a slice of %v", s.WallNS)
			}
		}
	}
	if elapsed > 15*time.Second+200*time.Millisecond {
		t.Errorf("15 s took %v", elapsed)
	}
}

// Nobody is opened too late to have some turns: a candidate of one turn would leave the answer
// open.
func TestLateCandidates(t *testing.T) {
	for budget := 5 * time.Second; budget < 15*time.Second; budget += 250 * time.Millisecond {
		_, f, _ := run(t, &benchtest.Machine{Seed: 6, Noise: 0.05}, host(6, budget), near)
		for cell, n := range turnsOf(f) {
			if n < 2 {
				t.Errorf("%v: %v had %d turn", budget, cell.Suite, n)
			}
		}
	}
}

// A run that is continued with compares those that are still in the race.
func TestPairedResume(t *testing.T) {
	c := host(4, 20*time.Second)
	m := &benchtest.Machine{Seed: 4, Noise: 0.05}
	_, f, _ := run(t, m, c, near)
	c.BudgetNS = 40 * time.Second
	p := planned(t, c, near)
	p.Begin(f)
	step, ok := p.Next(20*time.Second, record.Slices{})
	if !ok || step.Action != plan.Open || step.Trials[0].Role != record.RoleReference {
		t.Fatalf("the first step is %+v", step)
	}
	for _, trial := range step.Trials {
		if trial.Want.MAC == "hmac-sha2-512-etm@openssh.com" || trial.ID <= len(f.Trials) {
			t.Errorf("opened again: %+v", trial)
		}
	}
	if !slices.ContainsFunc(step.Trials, func(trial record.Trial) bool { return trial.Want.Cipher == "aes128-gcm@openssh.com" }) {
		t.Error("the best is not in it")
	}
}

// A candidate that is ahead by less than the margin stays where not all others can have turns: they
// would leave the answer open, and it can be shown to be better. Where all can, it makes room for
// them.
func TestLittleAheadStays(t *testing.T) {
	for path, c := range map[string]struct {
		roundTrip, budget time.Duration
		most              int // ciphers and MACs that had turns, at most
		least             int // and at least
	}{"far": {20 * time.Millisecond, 15 * time.Second, 3, 3}, "near": {0, 2 * time.Minute, 200, 9}} {
		env := near
		env.Login, env.RoundTrip = 400*time.Millisecond, c.roundTrip
		_, f, _ := run(t, &benchtest.Machine{Seed: 9, Noise: 0.02, Path: 36}, host(9, c.budget), env)
		if n := len(turnsOf(f)); n < c.least || n > c.most {
			t.Errorf("%s: %d had turns, want %d to %d", path, n, c.least, c.most)
		}
	}
}
