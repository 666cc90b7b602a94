package plan_test

import (
	"slices"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/measure/model/sim"
	"sshpace/internal/measure/plan"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// noisy is a machine as they were observed: segments of a connection within
// 1.5 %, connections within 2 %, blocks within 1 %, cells 1.4 % off the additive
// model, wall time 6 % worse than cost.
func noisy(seed uint64) *sim.Machine {
	return &sim.Machine{Seed: seed, Noise: 0.015, WallNoise: 0.06, Connection: 0.02, BlockDrift: 0.01, Interaction: 0.014}
}

func budget(seed uint64, d time.Duration) plan.Spec {
	s := spec(seed)
	s.Budget, s.Cores = d, 2
	return s
}

func sequential(t *testing.T, m *sim.Machine, s plan.Spec) (*record.File, *rank.Ranking, *plan.Plan) {
	t.Helper()
	p, err := plan.Sequential(s)
	f, _ := collect(t, m, p, err)
	r, err := rank.Of(f, rank.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return f, r, p
}

// firstRanking is the simulated time after which every cell was measured or
// could be predicted.
func firstRanking(t *testing.T, m *sim.Machine, s plan.Spec) time.Duration {
	t.Helper()
	p, err := plan.Sequential(s)
	if err != nil {
		t.Fatal(err)
	}
	for elapsed := time.Duration(0); ; {
		trial, ok := p.Next(elapsed)
		if !ok {
			t.Fatal("no complete ranking before the end")
		}
		sample := m.Run(trial)
		elapsed += sample.ElapsedNS
		p.Observe(trial, sample)
		if p.Progress().Ranked {
			return elapsed
		}
	}
}

func TestFirstRankingComesEarly(t *testing.T) {
	for seed := range uint64(10) {
		if took := firstRanking(t, noisy(seed), budget(seed, time.Minute)); took > 15*time.Second {
			t.Errorf("seed %d: the first complete ranking took %v, want at most 15 s", seed, took)
		}
	}
}

func TestEveryCellIsMeasuredInNinetySeconds(t *testing.T) {
	f, r, p := sequential(t, noisy(1), budget(1, 90*time.Second))
	if p.End() != plan.EndBudget {
		t.Errorf("ended by %q, want the budget", p.End())
	}
	if len(r.Bulk) != 115 || len(r.Kex) != 12 {
		t.Errorf("%d cells and %d key exchanges, want 115 and 12", len(r.Bulk), len(r.Kex))
	}
	for _, c := range r.Bulk {
		if c.Basis != rank.Measured {
			t.Errorf("%s was only predicted", c.Suite)
		}
	}
	for _, k := range r.Kex {
		if k.Login.N < 5 {
			t.Errorf("%s has %d logins, want at least 5", k.Name, k.Login.N)
		}
	}
	blocks := map[int]bool{}
	for _, trial := range f.Trials {
		if trial.Role == record.RoleReference {
			blocks[trial.Block] = true
		}
	}
	for n := 1; n < p.Progress().Block; n++ {
		if !blocks[n] {
			t.Errorf("block %d has no reference cell", n)
		}
	}
}

func TestHeldOutCellsAreNeverFitted(t *testing.T) {
	f, r, _ := sequential(t, noisy(2), budget(2, 90*time.Second))
	roles := map[alg.Suite]map[bool]bool{}
	for _, trial := range f.Trials {
		if trial.Workload != record.Transfer {
			continue
		}
		cell := trial.Want.Bulk()
		if roles[cell] == nil {
			roles[cell] = map[bool]bool{}
		}
		roles[cell][trial.Role == record.RoleHoldout] = true
	}
	held := 0
	for cell, as := range roles {
		if len(as) > 1 {
			t.Errorf("%s is both held out and not", cell)
		}
		if as[true] {
			held++
		}
	}
	if held != 12 || r.Model.HoldoutCells != 12 {
		t.Errorf("%d cells are held out, %d in the report, want 12", held, r.Model.HoldoutCells)
	}
}

func TestPredictionsAreGood(t *testing.T) {
	var medians, tails []float64
	for seed := range uint64(12) {
		_, r, _ := sequential(t, noisy(seed), budget(seed, time.Minute))
		medians, tails = append(medians, r.Model.HoldoutError), append(tails, r.Model.HoldoutP95)
	}
	if m, p := stats.Median(medians), stats.Median(tails); m > 3 || p > 8 {
		t.Errorf("hold-out error %.1f %% (median), %.1f %% (95th percentile), want at most 3 and 8", m, p)
	}
}

func TestControlsAreHidden(t *testing.T) {
	f, r, _ := sequential(t, noisy(3), budget(3, 90*time.Second))
	halves := map[int][]record.Trial{}
	for _, trial := range f.Trials {
		if trial.Role == record.RoleControl && trial.Workload == record.Transfer {
			halves[trial.Pair] = append(halves[trial.Pair], trial)
		}
	}
	if len(halves) < 4 {
		t.Errorf("%d A/A pairs, want at least 4", len(halves))
	}
	for id, two := range halves {
		if len(two) != 2 || two[0].Want != two[1].Want || two[0].Offered == two[1].Offered || two[0].Block != two[1].Block {
			t.Errorf("pair %d is none: %+v", id, two)
		}
	}
	if len(r.Controls) < 3 {
		t.Errorf("%d controls in the report, want bulk and key exchange ones", len(r.Controls))
	}
}

func TestSameSeedSamePlan(t *testing.T) {
	one, _, _ := sequential(t, noisy(4), budget(4, 30*time.Second))
	two, _, _ := sequential(t, noisy(4), budget(4, 30*time.Second))
	if !slices.EqualFunc(one.Samples, two.Samples, func(a, b record.Sample) bool {
		return one.Trials[a.Trial] == two.Trials[b.Trial]
	}) {
		t.Error("the same seed and samples gave another plan")
	}
}

func TestSequentialResumes(t *testing.T) {
	s := budget(5, 60*time.Second)
	whole, _, _ := sequential(t, noisy(5), s)
	second, err := plan.Sequential(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, sample := range whole.Samples[:90] {
		second.Observe(whole.Trials[sample.Trial], sample)
	}
	next, ok := second.Next(30 * time.Second)
	if want := whole.Trials[whole.Samples[90].Trial]; !ok || next.Block < want.Block {
		t.Errorf("after 90 trials the plan goes on with block %d, was in %d", next.Block, want.Block)
	}
	if p := second.Progress(); p.Done < 40 {
		t.Errorf("%d cells done after resuming, want what the file had", p.Done)
	}
}

func TestEndsByPrecision(t *testing.T) {
	s := spec(6)
	s.Precision, s.Cores = 8, 2
	_, r, p := sequential(t, noisy(6), s)
	if p.End() != plan.EndPrecision {
		t.Fatalf("ended by %q", p.End())
	}
	known := func(name string, quantities ...*rank.Quantity) {
		for _, q := range quantities {
			if q.HalfWidth() > 0.08 {
				t.Errorf("%s is known to ±%.1f %%, want 8", name, 100*q.HalfWidth())
			}
		}
	}
	for _, c := range r.Bulk {
		known(c.Suite.String(), c.Throughput, c.Client, c.Server)
	}
	for _, k := range r.Kex {
		known(k.Name, k.Login)
	}
}

func TestFailuresDoNotStopAPlan(t *testing.T) {
	m := noisy(7)
	m.Fail = 0.15
	_, r, p := sequential(t, m, budget(7, 90*time.Second))
	if p.End() != plan.EndBudget || len(r.Bulk) < 112 {
		t.Errorf("ended by %q with %d cells", p.End(), len(r.Bulk))
	}
	p, err := plan.Sequential(budget(8, 90*time.Second))
	f, _ := collect(t, &sim.Machine{Fail: 1}, p, err)
	if p.End() != plan.EndFailures || len(f.Samples) > 10 {
		t.Errorf("with nothing but failures: ended by %q after %d trials", p.End(), len(f.Samples))
	}
}

// With every space, however small, a plan must start, end, and give a ranking.
func TestSmallSpaces(t *testing.T) {
	full := sim.Offer()
	for name, offer := range map[string]alg.Offer{
		"one cell":      {Ciphers: []string{"aes128-gcm@openssh.com"}, Kex: []string{"curve25519-sha256"}},
		"one MAC":       {Ciphers: full.Ciphers, MACs: []string{"hmac-sha1"}, Kex: full.Kex},
		"one cipher":    {Ciphers: []string{"aes128-ctr"}, MACs: full.MACs, Kex: full.Kex[:1]},
		"two by two":    {Ciphers: []string{"aes128-ctr", "3des-cbc"}, MACs: full.MACs[:2], Kex: full.Kex[:2]},
		"AEAD only":     {Ciphers: []string{"aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com"}, MACs: full.MACs, Kex: full.Kex},
		"without a MAC": {Ciphers: []string{"aes256-gcm@openssh.com"}, Kex: full.Kex},
	} {
		p, err := plan.Sequential(plan.Spec{Space: alg.Fold(offer), Budget: 20 * time.Second})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		f, _ := noisy(9).Collect(record.Campaign{Offer: offer}, plan.NewSingles(p, 1))
		r, err := rank.Of(f, rank.Options{})
		if err != nil || len(r.Bulk) != len(alg.Fold(offer).Bulk) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := plan.Sequential(plan.Spec{}); err == nil {
		t.Error("a plan for nothing has no error")
	}
}

func TestBothDirections(t *testing.T) {
	s := budget(10, 3*time.Minute)
	s.Directions = []record.Direction{record.Upload, record.Download}
	_, r, _ := sequential(t, noisy(10), s)
	count := map[record.Direction]int{}
	for _, c := range r.Bulk {
		count[c.Direction]++
	}
	if count[record.Upload] != 115 || count[record.Download] != 115 {
		t.Errorf("cells by direction: %v", count)
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

func TestRunsAgree(t *testing.T) {
	var quiet, busy []float64
	for seed := range uint64(5) {
		_, a, _ := sequential(t, noisy(seed), budget(seed, time.Minute))
		_, b, _ := sequential(t, noisy(seed+100), budget(seed+100, time.Minute))
		m := noisy(seed + 200)
		m.Busy = 1
		_, c, _ := sequential(t, m, budget(seed+200, time.Minute))
		quiet, busy = append(quiet, tau(a, b)), append(busy, tau(a, c))
	}
	if got := stats.Median(quiet); got < 0.95 {
		t.Errorf("two quiet runs: tau %.3f of %.3f, want at least 0.95", got, quiet)
	}
	if got := slices.Min(busy); got < 0.9 {
		t.Errorf("quiet and busy: tau %.3f, want at least 0.9", got)
	}
}

// Planning may not take more than 1 % of a core from what is measured. CPU
// time and not wall time, so that a busy machine does not matter.
func TestPlanningIsCheap(t *testing.T) {
	p, err := plan.Sequential(budget(11, 90*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	before := cpuTime(t)
	_, elapsed := collect(t, noisy(11), p, nil)
	if share := float64(cpuTime(t)-before) / float64(elapsed); share > 0.01 {
		t.Errorf("planning took %.2f %% of the measuring time, want at most 1 %%", 100*share)
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
