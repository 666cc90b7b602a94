package rank_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/model/sim"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

func compare(t *testing.T, o rank.CompareOptions, machines ...*sim.Machine) *rank.Comparison {
	t.Helper()
	var inputs []rank.Input
	for i, m := range machines {
		inputs = append(inputs, rank.Input{Label: string(rune('a' + i)), Ranking: of(t, simulate(t, m, time.Minute), rank.Options{})})
	}
	c, err := rank.Compare(inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	finite(t, reflect.ValueOf(c))
	return c
}

// slower makes every cell of a cipher cost more.
func slower(m *sim.Machine, cipher string, factor float64) *sim.Machine {
	m.Factor = map[alg.Suite]float64{}
	for _, cell := range alg.Fold(sim.Offer()).Bulk {
		if cipher == "" || cell.Cipher == cipher {
			m.Factor[cell] = factor
		}
	}
	return m
}

// A planted difference of 5 % must be found, in the cipher that has it, and
// equal machines must not be told apart, each in 95 % of the comparisons.
func TestPlantedDifference(t *testing.T) {
	found, missed, falsely := 0, 0, 0
	const runs = 60
	for seed := range uint64(runs) {
		c := compare(t, rank.CompareOptions{}, noisy(seed), slower(noisy(1000+seed), "aes128-ctr", 1.05))
		planted := false
		for _, g := range c.Ciphers {
			if g.Name == "aes128-ctr" && g.Ratios[0].Verdict == rank.Slower {
				planted = true
			}
		}
		if planted {
			found++
		} else {
			missed++
		}
		if len(compare(t, rank.CompareOptions{}, noisy(2000+seed), noisy(3000+seed)).Worst(5)) > 0 {
			falsely++
		}
	}
	if found < runs*95/100 {
		t.Errorf("5 %% found in %d of %d comparisons", found, runs)
	}
	if falsely > runs*5/100 {
		t.Errorf("equal machines: regressions of 5 %% in %d of %d comparisons", falsely, runs)
	}
}

func TestOverallSpeed(t *testing.T) {
	hits, wrong := 0, 0
	const runs = 60
	for seed := range uint64(runs) {
		c := compare(t, rank.CompareOptions{}, noisy(seed), slower(noisy(500+seed), "", 1.10))
		r := c.Overall[0]
		if r.Speed.Lo <= 1/1.1 && 1/1.1 <= r.Speed.Hi {
			hits++
		}
		if r.Verdict != rank.Slower {
			wrong++
		}
	}
	if hits < runs*88/100 || wrong > 0 {
		t.Errorf("the interval holds 1/1.1 in %d of %d comparisons, the verdict is wrong in %d", hits, runs, wrong)
	}
}

// The order of equal machines agrees, and that of a machine where AES is slow
// does not.
func TestOrder(t *testing.T) {
	other := noisy(43)
	other.Factor = map[alg.Suite]float64{}
	for _, cell := range alg.Fold(sim.Offer()).Bulk {
		if strings.HasPrefix(cell.Cipher, "aes") {
			other.Factor[cell] = 1 / (0.2 + 0.1*float64(len(cell.MAC)%7))
		}
	}
	c := compare(t, rank.CompareOptions{}, noisy(41), noisy(42), other)
	if c.Order[0] < 0.9 || c.Order[1] > 0.8 {
		t.Errorf("Kendall's tau %.3f between equal machines, %.3f to another", c.Order[0], c.Order[1])
	}
}

func TestNormalised(t *testing.T) {
	o := rank.CompareOptions{Normalise: []string{"3des-*"}}
	c := compare(t, o, noisy(1), slower(noisy(2), "", 2))
	if r := c.Overall[0].Speed; math.Abs(r.Value-1) > 0.05 {
		t.Errorf("a machine of half the speed is %.3f as fast after normalising", r.Value)
	}
	inputs := []rank.Input{{Label: "a", Ranking: of(t, simulate(t, noisy(1), 30*time.Second), rank.Options{})}}
	inputs = append(inputs, inputs[0])
	if _, err := rank.Compare(inputs, rank.CompareOptions{Normalise: []string{"blowfish-cbc"}}); err == nil || !strings.Contains(err.Error(), "blowfish-cbc") {
		t.Errorf("normalising to a cipher that is not there: %v", err)
	}
}

// The third machine lacks AES instructions: the model must say so.
func TestMachines(t *testing.T) {
	without := noisy(3)
	without.Scale = 2
	without.Factor = map[alg.Suite]float64{{Cipher: "aes128-gcm@openssh.com"}: 6, {Cipher: "aes256-gcm@openssh.com"}: 6}
	c := compare(t, rank.CompareOptions{}, noisy(1), noisy(2), without)
	if len(c.Machines) != 3 {
		t.Fatalf("%d machines", len(c.Machines))
	}
	if s := c.Machines[2].Speed; math.Abs(s-0.5) > 0.06 {
		t.Errorf("speed of the third machine is %.2f, want about 0.5", s)
	}
	for _, d := range c.Machines[2].Deviating[:2] {
		if !strings.HasSuffix(d.Suite.Cipher, "-gcm@openssh.com") || d.Factor > 0.5 {
			t.Errorf("%s deviates by a factor of %.2f", d.Suite, d.Factor)
		}
	}
}

// On a machine that is busy all the time, throughput differs by a factor of two
// between runs, which is no regression.
func TestBusyRunsHaveNoRegression(t *testing.T) {
	fast, slow := noisy(11), noisy(12)
	fast.Busy, slow.Busy, slow.Scale = 1, 1, 2.2
	var inputs []rank.Input
	for _, m := range []*sim.Machine{fast, slow} {
		inputs = append(inputs, rank.Input{Label: "run", Ranking: of(t, simulate(t, m, 30*time.Second), rank.Options{By: rank.Throughput})})
	}
	c, err := rank.Compare(inputs, rank.CompareOptions{By: rank.Throughput})
	if err != nil {
		t.Fatal(err)
	}
	if worse := c.Worst(5); len(worse) > 0 {
		t.Errorf("regressions between disturbed runs: %q", worse)
	}
	if v := c.Overall[0].Verdict; v != rank.Unclear {
		t.Errorf("overall verdict %q, want that it is unclear", v)
	}
}

// Logins whose time was too noisy to rank by are compared by CPU time.
func TestLoginsByCost(t *testing.T) {
	calm, loud := noisy(21), noisy(22)
	calm.WallNoise, loud.WallNoise = 0.01, 0.5
	c := compare(t, rank.CompareOptions{}, calm, loud)
	if c.KexBy != rank.Cost {
		t.Fatalf("logins are compared by %q", c.KexBy)
	}
	for _, g := range c.Kex {
		if r := g.Ratios[0].Speed; math.Abs(r.Value-1) > 0.1 {
			t.Errorf("%s: CPU time differs by a factor of %.2f", g.Name, r.Value)
		}
	}
	if c := compare(t, rank.CompareOptions{}, calm, calm); c.KexBy != rank.Throughput {
		t.Errorf("calm logins are compared by %q, want by time", c.KexBy)
	}
}

// Where one file lacks the server's CPU time, the clients are compared.
func TestOneFileWithoutServer(t *testing.T) {
	alone := noisy(32)
	alone.NoServer = true
	c := compare(t, rank.CompareOptions{By: rank.Cost}, noisy(31), alone)
	if r := c.Overall[0].Speed; math.Abs(r.Value-1) > 0.05 {
		t.Errorf("equal clients differ by a factor of %.2f", r.Value)
	}
	if got := c.BulkBasis(); got != "CPU cost of the client" {
		t.Errorf("compared by %q", got)
	}
}

func TestNothingInCommon(t *testing.T) {
	good := transfer(1e6, time.Millisecond, ns(900*time.Microsecond), ns(800*time.Microsecond))
	one := of(t, file(small, []record.Trial{cell("aes128-ctr", "hmac-sha1", record.Upload)}, []record.Sample{good}), rank.Options{})
	two := of(t, file(small, []record.Trial{cell("aes128-ctr", "hmac-sha1", record.Download)}, []record.Sample{good}), rank.Options{})
	_, err := rank.Compare([]rank.Input{{Label: "a", Ranking: one}, {Label: "b", Ranking: two}}, rank.CompareOptions{})
	if !errors.Is(err, rank.ErrNothingCommon) {
		t.Errorf("error %v, want that nothing is common", err)
	}
	if _, err := rank.Compare([]rank.Input{{Label: "a", Ranking: one}}, rank.CompareOptions{}); err == nil {
		t.Error("one file compared with nothing has no error")
	}
}

func TestDifferencesAreTold(t *testing.T) {
	a, b := simulate(t, noisy(1), 20*time.Second), simulate(t, noisy(2), 20*time.Second)
	a.Environment.Client, b.Environment.Client = "OpenSSH_9.2p1", "OpenSSH_10.5p1"
	c, err := rank.Compare([]rank.Input{{Label: "a", Ranking: of(t, a, rank.Options{})}, {Label: "b", Ranking: of(t, b, rank.Options{})}}, rank.CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range c.Warnings {
		if w.Name == "client" && strings.Contains(w.Text, "9.2p1") && strings.Contains(w.Text, "10.5p1") {
			return
		}
	}
	t.Errorf("no warning about the versions: %v", c.Warnings)
}

// part is the file with only some of its cells.
func part(f *record.File, keep func(alg.Suite) bool) *record.File {
	out := *f
	out.Samples = nil
	for _, s := range f.Samples {
		if keep(f.Trials[s.Trial].Want.Bulk()) {
			out.Samples = append(out.Samples, s)
		}
	}
	return &out
}

// A file with some of another one's cells is as fast as that: the reference is
// made of the cells that both have.
func TestNormalisedByCommonCells(t *testing.T) {
	whole := simulate(t, noisy(61), time.Minute)
	ctr := part(whole, func(s alg.Suite) bool { return strings.HasSuffix(s.Cipher, "-ctr") })
	c, err := rank.Compare([]rank.Input{
		{Label: "whole", Ranking: of(t, whole, rank.Options{})}, {Label: "ctr", Ranking: of(t, ctr, rank.Options{})},
	}, rank.CompareOptions{Normalise: []string{"aes*"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := c.Overall[0].Speed; math.Abs(r.Value-1) > 0.01 {
		t.Errorf("the same samples are %.3f as fast", r.Value)
	}
	for _, name := range c.Normalised {
		if !strings.HasSuffix(name, "-ctr") {
			t.Errorf("normalised to %s, which one file lacks", name)
		}
	}
	if worse := c.Worst(5); len(worse) > 0 {
		t.Errorf("regressions: %q", worse)
	}
}

// Runs on one machine differ as a whole, and a table of equals must show no
// verdict in 95 % of comparisons: also not after normalising to a single cell.
func TestEqualMachinesHaveNoVerdict(t *testing.T) {
	const runs = 20
	for name, o := range map[string]rank.CompareOptions{"plain": {}, "normalised": {Normalise: []string{"chacha20-*"}}} {
		random := rand.New(rand.NewPCG(6, 1))
		wrong := map[string]int{}
		for seed := range uint64(runs) {
			a, b := noisy(7000+seed), noisy(8000+seed)
			a.Scale, b.Scale = math.Exp(0.02*random.NormFloat64()), math.Exp(0.02*random.NormFloat64())
			c := compare(t, o, a, b)
			wrong["overall"] += verdicts(rank.Group{Ratios: c.Overall})
			wrong["ciphers"] += verdicts(c.Ciphers...)
			wrong["MACs"] += verdicts(c.MACs...)
			wrong["logins"] += verdicts(c.Kex...)
		}
		for table, n := range wrong {
			if n > 3 { // more than 3 of 20 at 5 % happens once in 60
				t.Errorf("%s: the %s of equal machines differ in %d of %d comparisons", name, table, n, runs)
			}
		}
	}
}

// verdicts is 1 where any ratio is said to differ.
func verdicts(groups ...rank.Group) int {
	for _, g := range groups {
		if v := g.Ratios[0].Verdict; v == rank.Faster || v == rank.Slower {
			return 1
		}
	}
	return 0
}
