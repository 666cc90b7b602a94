package compare_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/model"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// minutes is a minute's ranking of each machine.
func minutes(t *testing.T, machines ...*benchtest.Machine) (inputs []compare.Input) {
	t.Helper()
	for i, m := range machines {
		inputs = append(inputs, compare.Input{Label: string(rune('a' + i)), Ranking: benchtest.Of(t, benchtest.Simulate(t, m, time.Minute), rank.Auto)})
	}
	return inputs
}

func compared(t *testing.T, o compare.Options, machines ...*benchtest.Machine) *compare.Comparison {
	t.Helper()
	return comparedAs(t, o, minutes(t, machines...))
}

func comparedAs(t *testing.T, o compare.Options, inputs []compare.Input) *compare.Comparison {
	t.Helper()
	c, err := compare.Of(inputs, o)
	if err != nil {
		t.Fatal(err)
	}
	benchtest.Finite(t, c)
	return c
}

// slower makes every cell of a cipher cost more.
func slower(m *benchtest.Machine, cipher string, factor float64) *benchtest.Machine {
	m.Factor = map[alg.Suite]float64{}
	for _, cell := range alg.Fold(benchtest.Offer()).Bulk {
		if cipher == "" || cell.Cipher == cipher {
			m.Factor[cell] = factor
		}
	}
	return m
}

// overall is the change of all cells in the second file.
func overall(c *compare.Comparison) compare.Ratio { return c.In(compare.Overall)[0].Ratios[0] }

// failing is what a gate of 5 % finds.
func failing(c *compare.Comparison) (worse []string) {
	for _, l := range c.Judge(slowerBy5).Failed {
		worse = append(worse, l.String())
	}
	return worse
}

func TestOverallSpeed(t *testing.T) {
	hits, wrong := 0, 0
	const runs = 5
	first := seedtest.Of(t)
	for seed := first; seed < first+runs; seed++ {
		c := compared(t, compare.Options{}, benchtest.Noisy(seed), slower(benchtest.Noisy(500+seed), "", 1.10))
		r := overall(c)
		if speed := r.Interval(); speed.Lo <= 1/1.1 && 1/1.1 <= speed.Hi {
			hits++
		}
		if r.Verdict != stats.Worse {
			wrong++
		}
	}
	if hits < runs-2 || wrong > 0 {
		t.Errorf("the interval holds 1/1.1 in %d of %d comparisons, the verdict is wrong in %d", hits, runs, wrong)
	}
}

// The order of equal machines agrees, and that of a machine where AES is slow does not.
func TestOrder(t *testing.T) {
	seed := seedtest.Of(t)
	other := benchtest.Noisy(seed + 43)
	other.Factor = map[alg.Suite]float64{}
	for _, cell := range alg.Fold(benchtest.Offer()).Bulk {
		if strings.HasPrefix(cell.Cipher, "aes") {
			other.Factor[cell] = 1 / (0.2 + 0.1*float64(len(cell.MAC)%7))
		}
	}
	c := compared(t, compare.Options{}, benchtest.Noisy(seed+41), benchtest.Noisy(seed+42), other)
	if c.Order[0] < 0.9 || c.Order[1] > 0.88 {
		t.Errorf("Kendall's tau %.3f between equal machines, %.3f to another", c.Order[0], c.Order[1])
	}
}

func TestNormalized(t *testing.T) {
	seed := seedtest.Of(t)
	o := compare.Options{Normalize: []string{"3des-*"}}
	c := compared(t, o, benchtest.Noisy(seed+1), slower(benchtest.Noisy(seed+2), "", 2))
	if r := overall(c); math.Abs(r.Value()-1) > 0.05 {
		t.Errorf("a machine of half the speed is %.3f as fast after normalizing", r.Value())
	}
	inputs := []compare.Input{{Label: "a", Ranking: benchtest.Of(t, benchtest.Simulate(t, benchtest.Noisy(seed+1), 30*time.Second), rank.Auto)}}
	inputs = append(inputs, inputs[0])
	if _, err := compare.Of(inputs, compare.Options{Normalize: []string{"blowfish-cbc"}}); err == nil || !strings.Contains(err.Error(), "blowfish-cbc") {
		t.Errorf("normalizing to a cipher that is not there: %v", err)
	}
}

// The third machine lacks AES instructions: the model must say so.
func TestMachines(t *testing.T) {
	seed := seedtest.Of(t)
	without := benchtest.Noisy(seed + 3)
	without.Scale = 2
	without.Factor = map[alg.Suite]float64{{Cipher: "aes128-gcm@openssh.com"}: 6, {Cipher: "aes256-gcm@openssh.com"}: 6}
	c := compared(t, compare.Options{}, benchtest.Noisy(seed+1), benchtest.Noisy(seed+2), without)
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

// Logins whose time was too noisy to rank by are compared by CPU time.
func TestLoginsByCost(t *testing.T) {
	seed := seedtest.Of(t)
	calm, loud := benchtest.Noisy(seed+21), benchtest.Noisy(seed+22)
	calm.WallNoise, loud.WallNoise = 0.01, 0.5
	c := compared(t, compare.Options{}, calm, loud)
	for _, g := range c.In(compare.Kex) {
		if g.By != rank.Cost {
			t.Fatalf("logins are compared by %q", g.By)
		}
		if r := g.Ratios[0]; math.Abs(r.Value()-1) > 0.2 { // wall times differ by half
			t.Errorf("%s: CPU time differs by a factor of %.2f", g.Name, r.Value())
		}
	}
	if by := compared(t, compare.Options{}, calm, calm).In(compare.Kex)[0].By; by != rank.Throughput {
		t.Errorf("calm logins are compared by %q, want by time", by)
	}
}

// Where one file lacks the server's CPU time, the clients are compared.
func TestOneFileWithoutServer(t *testing.T) {
	seed := seedtest.Of(t)
	alone := benchtest.Noisy(seed + 32)
	alone.NoServer = true
	c := compared(t, compare.Options{By: rank.Cost}, benchtest.Noisy(seed+31), alone)
	if r := overall(c); math.Abs(r.Value()-1) > 0.05 {
		t.Errorf("equal clients differ by a factor of %.2f", r.Value())
	}
	if !c.Lines[0].ClientAlone {
		t.Error("compared by both sides")
	}
}

// once is a file of one slice.
func once(d record.Direction) *record.File {
	cpu := 900 * time.Microsecond
	trial := record.Trial{ID: 1, Want: alg.NewSuite("aes128-ctr", "hmac-sha1", "curve25519-sha256"), Workload: record.Sitting, Direction: d}
	return &record.File{
		Campaign: record.Campaign{Format: record.FormatVersion, Offer: alg.Offer{Ciphers: []string{"aes128-ctr"}, MACs: []string{"hmac-sha1"}}},
		Trials:   map[int]record.Trial{1: trial},
		Samples:  []record.Sample{{Trial: 1, Outcome: record.OK, ElapsedNS: time.Second}},
		Slices: []record.Slices{{Sitting: 1, Slices: []record.Slice{
			{Trial: 1, Bytes: 1e6, WallNS: time.Millisecond, ClientCPUNS: &cpu, ServerCPUNS: &cpu},
		}}},
	}
}

func TestNothingInCommon(t *testing.T) {
	one := benchtest.Of(t, once(record.Upload), rank.Auto)
	two := benchtest.Of(t, once(record.Download), rank.Auto)
	_, err := compare.Of([]compare.Input{{Label: "a", Ranking: one}, {Label: "b", Ranking: two}}, compare.Options{})
	if !errors.Is(err, compare.ErrNothingCommon) {
		t.Errorf("error %v, want that nothing is common", err)
	}
	limits := &rank.Ranking{Measurements: []record.Measurement{{Name: "memory copy"}}}
	_, err = compare.Of([]compare.Input{{Label: "a", Ranking: one}, {Label: "b", Ranking: limits}}, compare.Options{})
	if !errors.Is(err, compare.ErrNothingCommon) || !strings.Contains(err.Error(), "a holds speeds of ciphers, b holds limits of a machine") {
		t.Errorf("error %v, want what either holds", err)
	}
	if _, err := compare.Of([]compare.Input{{Label: "a", Ranking: one}}, compare.Options{}); err == nil {
		t.Error("one file compared with nothing has no error")
	}
}

func TestDifferencesAreTold(t *testing.T) {
	seed := seedtest.Of(t)
	a, b := benchtest.Simulate(t, benchtest.Noisy(seed+1), 20*time.Second), benchtest.Simulate(t, benchtest.Noisy(seed+2), 20*time.Second)
	a.Environment.Client, b.Environment.Client = "OpenSSH_9.2p1", "OpenSSH_10.5p1"
	c, err := compare.Of([]compare.Input{{Label: "a", Ranking: benchtest.Of(t, a, rank.Auto)}, {Label: "b", Ranking: benchtest.Of(t, b, rank.Auto)}}, compare.Options{})
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
	out.Samples, out.Trials = nil, map[int]record.Trial{}
	for t, s := range f.Results() {
		if keep(t.Want.Bulk()) {
			out.Samples, out.Trials[t.ID] = append(out.Samples, s), t
		}
	}
	return &out
}

// A file with some of another one's cells is as fast as that: the reference is made of the cells
// that both have.
func TestNormalizedByCommonCells(t *testing.T) {
	whole := benchtest.Simulate(t, benchtest.Noisy(seedtest.Of(t)), time.Minute)
	ctr := part(whole, func(s alg.Suite) bool { return strings.HasSuffix(s.Cipher, "-ctr") })
	c, err := compare.Of([]compare.Input{
		{Label: "whole", Ranking: benchtest.Of(t, whole, rank.Auto)}, {Label: "ctr", Ranking: benchtest.Of(t, ctr, rank.Auto)},
	}, compare.Options{Normalize: []string{"aes*"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := overall(c); math.Abs(r.Value()-1) > 0.01 {
		t.Errorf("the same samples are %.3f as fast", r.Value())
	}
	for _, name := range c.Normalized {
		if !strings.HasSuffix(name, "-ctr") {
			t.Errorf("normalized to %s, which one file lacks", name)
		}
	}
	if worse := failing(c); len(worse) > 0 {
		t.Errorf("regressions: %q", worse)
	}
}

// Where nothing shows what other guests did, runs on one machine differ as a whole, and a table of
// equals must show no verdict in 95 % of comparisons: also not after normalizing to a single cell.
func TestEqualMachinesHaveNoVerdict(t *testing.T) {
	seed := seedtest.Of(t)
	const runs = 6
	random := rand.New(rand.NewPCG(seed, 1))
	wrong := map[string]int{}
	for i := range uint64(runs) {
		seed := seed + i
		a, b := benchtest.Noisy(7000+seed), benchtest.Noisy(8000+seed)
		a.Scale, b.Scale = math.Exp(0.02*random.NormFloat64()), math.Exp(0.02*random.NormFloat64())
		inputs := minutes(t, a, b)
		for _, in := range inputs {
			in.Ranking.Slowed = model.Slowed{}
		}
		for name, o := range map[string]compare.Options{"plain": {}, "normalized": {Normalize: []string{"chacha20-*"}}} {
			c := comparedAs(t, o, inputs)
			wrong[name+", overall"] += verdicts(c.In(compare.Overall))
			wrong[name+", ciphers"] += verdicts(c.In(compare.Ciphers))
			wrong[name+", MACs"] += verdicts(c.In(compare.MACs))
			wrong[name+", logins"] += verdicts(c.In(compare.Kex))
		}
	}
	for table, n := range wrong {
		if n > 3 { // of 6, at 5 %: once in ten thousand simulations
			t.Errorf("%s: equal machines differ in %d of %d comparisons", table, n, runs)
		}
	}
}

// verdicts is 1 where any ratio is said to differ.
func verdicts(lines []compare.Line) int {
	for _, l := range lines {
		if l.Ratios[0].Verdict.Differs() {
			return 1
		}
	}
	return 0
}
