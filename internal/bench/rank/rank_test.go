package rank_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/seedtest"
	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

func TestOfIsPure(t *testing.T) {
	f := benchtest.Simulate(t, benchtest.Noisy(seedtest.Of(t)), time.Minute)
	a, b := benchtest.Of(t, f, rank.Auto), benchtest.Of(t, f, rank.Auto)
	if diff := cmp.Diff(a, b, cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("the same file ranked twice differs:\n%s", diff)
	}
	if a.Ended != "budget" {
		t.Errorf("ended by %q, want the budget", a.Ended)
	}
}

func TestRanksAndGroupsAreInOrder(t *testing.T) {
	seed := seedtest.Of(t)
	r := benchtest.Of(t, benchtest.Simulate(t, benchtest.Noisy(seed+2), time.Minute), rank.Throughput)
	for i, c := range r.Bulk {
		if c.Rank != i+1 {
			t.Errorf("%s has rank %d at place %d", c.Suite, c.Rank, i+1)
		}
		if i > 0 && c.Throughput.Log > r.Bulk[i-1].Throughput.Log {
			t.Errorf("%s is faster than the one before it", c.Suite)
		}
		if q := c.Throughput.Shown; q.Lo > q.Value || q.Hi < q.Value {
			t.Errorf("%s: %v", c.Suite, *q)
		}
	}
	if first, last := r.Bulk[0].Group, r.Bulk[114].Group; first != "A" || last == "A" {
		t.Errorf("groups go from %s to %s", first, last)
	}
	byCost := benchtest.Of(t, benchtest.Simulate(t, benchtest.Noisy(seed+2), time.Minute), rank.Cost)
	for i, c := range byCost.Bulk[1:] {
		before := byCost.Bulk[i]
		if max(c.Client.Log, c.Server.Log) < max(before.Client.Log, before.Server.Log)-1e-9 {
			t.Errorf("the costlier side of %s costs less than that of the one before it", c.Suite)
		}
	}
}

// The costs of a ranking are those that the simulation knows.
func TestCostsAreTrue(t *testing.T) {
	hits, total := 0, 0
	first := seedtest.Of(t)
	for seed := first; seed < first+3; seed++ {
		m := benchtest.Noisy(seed)
		r := benchtest.Of(t, benchtest.Simulate(t, m, time.Minute), rank.Auto)
		var logs []float64
		for _, c := range r.Bulk {
			logs = append(logs, c.Client.Log-math.Log(m.Client(c.Suite)))
		}
		// What all cells have in common is the level of this run.
		level := stats.Mean(logs)
		if math.Abs(level) > 0.03 {
			t.Errorf("seed %d: all costs are off by %.1f %%", seed, 100*level)
		}
		for i, c := range r.Bulk {
			truth := m.Client(c.Suite) * math.Exp(level)
			hits += inside(truth, c.Client.Interval())
			total++
			if math.Abs(logs[i]-level) > 0.12 {
				t.Errorf("seed %d: %s is off by %.1f %%", seed, c.Suite, 100*(logs[i]-level))
			}
		}
	}
	if share := float64(hits) / float64(total); share < 0.84 {
		t.Errorf("%.1f %% of the intervals hold the truth, want about 95 %%", 100*share)
	}
}

func inside(x float64, q stats.Interval) int {
	if q.Lo <= x && x <= q.Hi {
		return 1
	}
	return 0
}

// No pair of A/A controls may be told apart in more than 5 % of comparisons.
func TestControlsAreRarelySeparated(t *testing.T) {
	separated, pairs, runs, seed := map[string]int{}, 0, 60, seedtest.Of(t)
	for i := range runs {
		r := benchtest.Of(t, benchtest.Simulate(t, benchtest.Noisy(seed+uint64(i)), time.Second), rank.Auto)
		for _, c := range r.Controls {
			pairs++
			if c.Separated {
				separated[c.A.Cipher+c.A.Kex]++
			}
		}
	}
	if pairs < 2*runs {
		t.Errorf("%d controls in %d runs", pairs, runs)
	}
	for name, n := range separated {
		if n > 10 { // of 60, at 5 %: once in a thousand simulations
			t.Errorf("%s was told from itself in %d of %d runs", name, n, runs)
		}
	}
}

// Two key exchanges and MACs that cost the same belong into one group, and those 5 % apart do not.
func TestEqualCellsShareAGroup(t *testing.T) {
	together, runs, seed := 0, 8, seedtest.Of(t)
	for i := range runs {
		m := benchtest.Noisy(seed + uint64(i))
		m.Interaction = 0
		r := benchtest.Of(t, benchtest.Simulate(t, m, 90*time.Second), rank.Cost)
		group := map[string]string{}
		for _, c := range r.Bulk {
			if c.Suite.Cipher == "aes128-ctr" {
				group[c.Suite.MAC] = c.Group
			}
		}
		if group["hmac-sha1"] == group["hmac-sha1-96"] {
			together++
		}
	}
	// A border of groups must lie somewhere: in a dense ranking it may fall between two equals, but
	// seldom.
	if together < runs/2 {
		t.Errorf("equal cells share a group in %d of %d runs", together, runs)
	}
}

// Where all cells cost the same there is one group.
func TestAllEqualIsOneGroup(t *testing.T) {
	one, runs, seed := 0, 8, seedtest.Of(t)
	for i := range runs {
		m := benchtest.Noisy(seed + uint64(i))
		m.Interaction, m.Factor = 0, map[alg.Suite]float64{}
		for _, cell := range alg.Fold(benchtest.Offer()).Bulk {
			m.Factor[cell] = 1 / (&benchtest.Machine{}).Client(cell)
		}
		r := benchtest.Of(t, benchtest.Simulate(t, m, 45*time.Second), rank.Cost)
		if r.Bulk[len(r.Bulk)-1].Group == "A" {
			one++
		}
	}
	if one < runs-2 {
		t.Errorf("equal cells are one group in %d of %d runs", one, runs)
	}
}

// connection is what one showed: how it began, and its only slice.
type connection struct {
	record.Sample
	slice record.Slice
}

func moved(bytes unit.Bytes, wall time.Duration, client, server *time.Duration) connection {
	return connection{
		record.Sample{Outcome: record.OK, ElapsedNS: time.Second},
		record.Slice{Bytes: bytes, WallNS: wall, ClientCPUNS: client, ServerCPUNS: server},
	}
}

func ns(d time.Duration) *time.Duration { return &d }

// file builds a file with one trial per connection.
func file(offer alg.Offer, trials []record.Trial, connections []connection) *record.File {
	f := &record.File{Campaign: record.Campaign{Format: record.FormatVersion, Offer: offer}, Trials: map[int]record.Trial{}}
	batch := record.Slices{Sitting: 1}
	for i, c := range connections {
		id := i + 1
		trials[i].ID, c.Trial, c.slice.Trial = id, id, id
		f.Trials[id] = trials[i]
		f.Samples, batch.Slices = append(f.Samples, c.Sample), append(batch.Slices, c.slice)
	}
	f.Slices = []record.Slices{batch}
	return f
}

var small = alg.Offer{
	Ciphers: []string{"aes128-ctr", "aes256-ctr", "aes128-gcm@openssh.com"},
	MACs:    []string{"hmac-sha1", "umac-64@openssh.com"}, Kex: []string{"curve25519-sha256"},
}

func cell(cipher, mac string, d record.Direction) record.Trial {
	return record.Trial{Want: alg.NewSuite(cipher, mac, "curve25519-sha256"), Workload: record.Sitting, Direction: d}
}

func TestBadInput(t *testing.T) {
	up, down := record.Upload, record.Download
	good := moved(1e6, time.Millisecond, ns(900*time.Microsecond), ns(800*time.Microsecond))
	for name, c := range map[string]struct {
		trials      []record.Trial
		connections []connection
		want        error
		cells       int
	}{
		"nothing":    {want: rank.ErrNoSamples},
		"all failed": {[]record.Trial{cell("aes128-ctr", "hmac-sha1", up)}, []connection{{Sample: record.Sample{Outcome: record.Refused, Detail: "no"}}}, rank.ErrNoSamples, 0},
		"zero bytes": {[]record.Trial{cell("aes128-ctr", "hmac-sha1", up)}, []connection{moved(0, time.Millisecond, ns(1), ns(1))}, rank.ErrNoSamples, 0},
		"zero time":  {[]record.Trial{cell("aes128-ctr", "hmac-sha1", up)}, []connection{moved(1e6, 0, ns(1), ns(1))}, rank.ErrNoSamples, 0},
		"negative":   {[]record.Trial{cell("aes128-ctr", "hmac-sha1", up)}, []connection{moved(-5, -time.Second, ns(-1), ns(-1))}, rank.ErrNoSamples, 0},
		"no CPU time used": {
			[]record.Trial{cell("aes128-ctr", "hmac-sha1", up)}, []connection{moved(1e6, time.Millisecond, ns(0), ns(0))}, nil, 1,
		},
		"one connection": {[]record.Trial{cell("aes128-ctr", "hmac-sha1", up)}, []connection{good}, nil, 1},
		"mixed directions": {
			[]record.Trial{cell("aes128-ctr", "hmac-sha1", up), cell("aes128-ctr", "hmac-sha1", down)}, []connection{good, good}, nil, 2,
		},
		"no CPU clock": {
			[]record.Trial{cell("aes128-ctr", "hmac-sha1", up), cell("aes256-ctr", "hmac-sha1", up)},
			[]connection{moved(1e6, time.Millisecond, nil, nil), moved(1e6, 2*time.Millisecond, nil, nil)}, nil, 2,
		},
		"server without /proc": {
			[]record.Trial{cell("aes128-ctr", "hmac-sha1", up)}, []connection{moved(1e6, time.Millisecond, ns(900*time.Microsecond), nil)}, nil, 1,
		},
		"a cell that was not offered": {
			[]record.Trial{cell("3des-cbc", "hmac-md5", up)}, []connection{good}, nil, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := rank.Of(file(small, c.trials, c.connections), rank.Auto)
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if err == nil {
				benchtest.Finite(t, r)
				if len(r.Bulk) != c.cells {
					t.Errorf("%d cells, want %d", len(r.Bulk), c.cells)
				}
			}
		})
	}
}

// A corner of the table predicts the fourth cell: 1.9 = 1.4 + 1.5 - 1.0.
func TestPrediction(t *testing.T) {
	at := func(ns100 int) connection {
		d := time.Duration(ns100) * 10 * time.Microsecond
		return moved(1e6, 2*d, ns(d), ns(d))
	}
	f := file(small, []record.Trial{
		cell("aes128-ctr", "umac-64@openssh.com", record.Upload), cell("aes256-ctr", "umac-64@openssh.com", record.Upload),
		cell("aes128-ctr", "hmac-sha1", record.Upload),
	}, []connection{at(100), at(140), at(150)})
	r := benchtest.Of(t, f, rank.Auto)
	if len(r.Bulk) != 4 || len(r.Missing) != 1 || r.Missing[0].Cipher != "aes128-gcm@openssh.com" {
		t.Fatalf("%d cells, missing %v; want four and the AEAD cipher missing", len(r.Bulk), r.Missing)
	}
	last := r.Bulk[3]
	if last.Basis != rank.Predicted || last.Client.N != 0 || math.Abs(last.Client.Value()-1.9) > 1e-6 {
		t.Errorf("%s: %s, %+v; want a prediction of 1.9", last.Suite, last.Basis, last.Client)
	}
}

func TestRemoteWithoutServerTime(t *testing.T) {
	seed := seedtest.Of(t)
	m := benchtest.Noisy(seed + 5)
	m.NoServer = true
	r := benchtest.Of(t, benchtest.Simulate(t, m, time.Minute), rank.Auto)
	if r.Bulk[0].Server.Known() || !r.Bulk[0].Client.Known() {
		t.Error("want the client's cost without the server's")
	}
	m = benchtest.Noisy(seed + 5)
	m.NoServer, m.NoClient = true, true
	r = benchtest.Of(t, benchtest.Simulate(t, m, time.Minute), rank.Cost)
	if r.By != rank.Throughput || len(r.Bulk) != 115 {
		t.Errorf("without any CPU time: %d cells by %s, want 115 by throughput", len(r.Bulk), r.By)
	}
}

// A forged file cannot make a ranking of millions of combinations.
func TestTooManyCombinations(t *testing.T) {
	f := benchtest.Simulate(t, benchtest.Noisy(seedtest.Of(t)), time.Minute)
	for i := range 4000 {
		f.Campaign.Offer.Ciphers = append(f.Campaign.Offer.Ciphers, fmt.Sprint("c", i))
		f.Campaign.Offer.MACs = append(f.Campaign.Offer.MACs, fmt.Sprint("m", i))
	}
	if _, err := rank.Of(f, rank.Auto); !errors.Is(err, rank.ErrTooMany) {
		t.Errorf("%v", err)
	}
}

// A login of which the server's CPU time is not known is no cheaper than others.
func TestLoginsWithoutTheirServerAreNoCheaper(t *testing.T) {
	f := benchtest.Simulate(t, benchtest.Noisy(seedtest.Of(t)), time.Minute)
	totals := func() map[string]float64 {
		out := map[string]float64{}
		for _, k := range benchtest.Of(t, f, rank.Auto).Kex {
			if k.Total.Known() {
				out[k.Name] = k.Total.Shown.Value
			}
		}
		return out
	}
	all := totals()
	for i, s := range f.Samples {
		if s.Phases != nil && i%2 == 0 {
			phases := *s.Phases
			phases.ServerCPUNS, f.Samples[i].Phases = nil, &phases
		}
	}
	for name, total := range totals() {
		if ratio := total / all[name]; ratio < 0.9 || ratio > 1.1 {
			t.Errorf("%s takes %.2f times the CPU time where the server's is known of half of the logins", name, ratio)
		}
	}
}

func TestOneCore(t *testing.T) {
	m := benchtest.Noisy(seedtest.Of(t))
	m.Cores = 1
	r := benchtest.Of(t, benchtest.Simulate(t, m, time.Minute), rank.Auto)
	var off []float64
	for _, c := range r.Bulk {
		off = append(off, math.Abs(1e9/c.Throughput.Value()/m.Wall(c.Suite)-1))
	}
	if stats.Median(off) > 0.06 {
		t.Errorf("throughput is off by %.1f %% on one core", 100*stats.Median(off))
	}
	if !slices.ContainsFunc(r.Warnings, func(w rank.Warning) bool { return w.Name == "one-core" }) {
		t.Error("no word about the single core")
	}
}

func TestUsable(t *testing.T) {
	login := record.Trial{Workload: record.Login}
	if (record.Result{Trial: login, Sample: record.Sample{Outcome: record.OK}}).Usable() ||
		(record.Result{Trial: login, Sample: record.Sample{Outcome: record.OK, Phases: &record.Phases{}}}).Usable() {
		t.Error("a login without a time is usable")
	}
}

// One login says nothing about its noise, so that nothing is told apart by it.
func TestSingleLoginsAreOneGroup(t *testing.T) {
	f := benchtest.Simulate(t, benchtest.Noisy(seedtest.Of(t)), 30*time.Second)
	seen := map[string]bool{}
	var kept []record.Sample
	for _, s := range f.Samples {
		if trial := f.Trials[s.Trial]; trial.Workload == record.Login {
			if seen[trial.Want.Kex] {
				continue
			}
			seen[trial.Want.Kex] = true
		}
		kept = append(kept, s)
	}
	f.Samples = kept
	r := benchtest.Of(t, f, rank.Auto)
	for _, k := range r.Kex {
		if k.Login.Shown.HalfWidth() < 0.05 {
			t.Errorf("%s: one login is known to ±%.1f %%", k.Name, 100*k.Login.Shown.HalfWidth())
		}
	}
	if r.Noise.Login < 5 {
		t.Errorf("noise floor of single logins is %.1f %%", r.Noise.Login)
	}
}

// A machine that becomes 20 % slower is said to, and one that does not is not.
func TestDriftIsTold(t *testing.T) {
	seed := seedtest.Of(t)
	slowing := benchtest.Noisy(seed + 72)
	slowing.Drift = 0.01 // per 100 trials
	if r := benchtest.Of(t, benchtest.Copies(t, slowing), rank.Auto); r.Harness.Drift < 8 {
		t.Errorf("drift %.1f %%, want about 20", r.Harness.Drift)
	} else if !slices.ContainsFunc(r.Warnings, func(w rank.Warning) bool { return w.Name == "drift" && strings.Contains(w.Text, "0.8") }) {
		t.Errorf("warnings %v do not say that it became slower", r.Warnings)
	}
	for range 3 {
		seed++
		if r := benchtest.Of(t, benchtest.Copies(t, benchtest.Noisy(seed)), rank.Auto); math.Abs(r.Harness.Drift) > 5 {
			t.Errorf("seed %d: a drift of %.1f %% on a steady machine", seed, r.Harness.Drift)
		}
	}
}

// Failures are counted although another connection of the same cell worked.
func TestFailuresAreCounted(t *testing.T) {
	m := benchtest.Noisy(seedtest.Of(t))
	m.Fail = 0.2
	r := benchtest.Of(t, benchtest.Copies(t, m), rank.Auto)
	if len(r.Refusals) != 1 || r.Refusals[record.Refused] < 5 || r.Trials < 40 {
		t.Errorf("failures %+v of %d trials", r.Refusals, r.Trials)
	}
	if !slices.ContainsFunc(r.Warnings, func(w rank.Warning) bool { return w.Name == "failures" }) {
		t.Errorf("no warning about failures: %v", r.Warnings)
	}
}

// A row has a cell of each direction, and one with an unknown figure is no row.
func TestRows(t *testing.T) {
	cell := func(name string, d record.Direction, v float64) rank.Cell {
		c := rank.Cell{Suite: alg.Suite{Cipher: name}, Direction: d}
		if v > 0 {
			e := stats.Estimate{Log: math.Log(v), N: 3}
			c.Throughput = rank.Figure{Estimate: e, Shown: e.OrNil()}
		}
		return c
	}
	r := &rank.Ranking{Bulk: []rank.Cell{
		cell("a", record.Upload, 3), cell("b", record.Upload, 2), cell("c", record.Upload, 1),
		cell("c", record.Download, 3), cell("a", record.Download, 2), cell("b", record.Download, 0),
	}}
	rows := r.Rows()
	if len(rows) != 2 || rows[0].Suite.Cipher != "a" || rows[1].Suite.Cipher != "c" {
		t.Fatalf("rows %v", rows)
	}
	for _, row := range rows {
		if len(row.Cells) != 2 || row.Cells[0].Direction != record.Upload || row.Cells[1].Direction != record.Download || row.Cells[1].Suite != row.Suite {
			t.Errorf("cells of %v: %v", row.Suite, row.Cells)
		}
	}
}
