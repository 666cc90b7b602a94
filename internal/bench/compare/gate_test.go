package compare_test

import (
	"math"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// rankingOf is a run whose transfers with each cipher take so many ns per byte, each known to a
// standard error of its own.
func rankingOf(err float64, costs map[string]float64) *rank.Ranking {
	r := &rank.Ranking{By: rank.Cost}
	r.Noise.Cost = 1
	r.Slowed.Known = true // what other guests did is known: runs differ by little else
	for _, cipher := range []string{"aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"} {
		if cost, ok := costs[cipher]; ok {
			e := stats.Estimate{Log: math.Log(cost), Err: err, N: 9}
			f := rank.Figure{Estimate: e, Shown: e.OrNil()}
			r.Bulk = append(r.Bulk, rank.Cell{Suite: alg.NewSuite(cipher, "", ""), Direction: record.Upload, Sides: rank.Sides{Client: f, Server: f, Total: f}})
		}
	}
	return r
}

func related2(t *testing.T, a, b *rank.Ranking) *compare.Comparison {
	t.Helper()
	c, err := compare.Of([]compare.Input{{Label: "a", Ranking: a}, {Label: "b", Ranking: b}}, compare.Options{By: rank.Cost})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var slowerBy5 = compare.Limit{Lines: "slower", Percent: 5}

// A gate says pass, fail, or that it cannot be said, by the verdicts' own intervals.
func TestGate(t *testing.T) {
	const gcm = "aes128-gcm@openssh.com"
	for _, test := range []struct {
		name         string
		err, slower  float64
		verdict      stats.Verdict
		failed, open bool
	}{
		{"equal and well known", 0.005, 1, stats.Equal, false, false},
		{"slower by a third, and it shows", 0.005, 1.33, stats.Worse, true, false},
		{"slower, but perhaps by less than 5 %", 0.008, 1.06, stats.Worse, false, true},
		{"slower by less than 5 %", 0.002, 1.03, stats.Equal, false, false},
		{"hardly known", 0.2, 1, stats.NotEnough, false, true},
		{"faster", 0.005, 0.8, stats.Better, false, false},
		{"p is below 5 %, but not the interval's end", 0.02, 1.08, stats.Worse, false, true},
	} {
		c := related2(t, rankingOf(test.err, map[string]float64{gcm: 1}), rankingOf(test.err, map[string]float64{gcm: test.slower}))
		g := c.Judge(slowerBy5)
		if v := overall(c).Verdict; v != test.verdict || len(g.Failed) > 0 != test.failed || len(g.Open) > 0 != test.open {
			t.Errorf("%s: %s, fail %v, open %v; want %s, %v, %v", test.name, v, g.Failed, g.Open, test.verdict, test.failed, test.open)
		}
		want := map[[2]bool]compare.Outcome{{true, false}: compare.Fail, {true, true}: compare.Fail, {false, true}: compare.Inconclusive, {false, false}: compare.Pass}[[2]bool{test.failed, test.open}]
		if g.Outcome != want {
			t.Errorf("%s: %s, want %s", test.name, g.Outcome, want)
		}
		for _, l := range g.Failed {
			if l.Interval().Hi >= 1 || l.Outcome != compare.Fail {
				t.Errorf("%s: the gate fails on %s, whose interval is %v, and marks it %q", test.name, l.Name, l.Interval(), l.Outcome)
			}
		}
	}
}

// What two files can show is the least slowdown that would be called one.
func TestLeastDifference(t *testing.T) {
	const gcm, err = "aes128-gcm@openssh.com", 0.01
	c := related2(t, rankingOf(err, map[string]float64{gcm: 1}), rankingOf(err, map[string]float64{gcm: 1}))
	least := c.Shows(compare.Speed)
	if want := math.Expm1(1.96 * math.Sqrt2 * math.Hypot(err, 0.005)); math.Abs(least-want) > 0.0001 { // one line, and half a percent between runs
		t.Errorf("differences from %.2f %% on, want %.2f %%", 100*least, 100*want)
	}
	for slower, shown := range map[float64]bool{1 + 0.9*least: false, 1 + 1.1*least: true} {
		r := overall(related2(t, rankingOf(err, map[string]float64{gcm: 1}), rankingOf(err, map[string]float64{gcm: slower})))
		if r.Judged.P < 0.05 != shown {
			t.Errorf("%.3f times slower: p %.3f, where differences from %.2f %% on are said to be shown", slower, r.Judged.P, 100*least)
		}
	}
}

// What only one side has is listed, and a default that changed.
func TestLacking(t *testing.T) {
	const gcm128, gcm256, chacha = "aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com"
	a, b := rankingOf(0.01, map[string]float64{gcm128: 1, gcm256: 2}), rankingOf(0.01, map[string]float64{gcm128: 1, chacha: 2})
	a.Campaign.Shared = alg.Offer{Ciphers: []string{gcm128, gcm256, chacha, "3des-cbc"}, Kex: []string{"curve25519-sha256@libssh.org"}}
	b.Campaign.Shared = alg.Offer{Ciphers: []string{gcm128, gcm256, chacha}, Kex: []string{"curve25519-sha256", "mlkem768x25519-sha256"}}
	a.Campaign.Present, b.Campaign.Present = alg.NewSuite(chacha, "", "curve25519-sha256@libssh.org"), alg.NewSuite(chacha, "", "mlkem768x25519-sha256")
	c := related2(t, a, b)
	only, unmeasured := map[string]int{}, map[string]int{}
	for _, o := range c.Only {
		if len(o.Offered) < 2 {
			only[o.Name] = o.Offered[0]
		} else {
			unmeasured[o.Name] = 1 - o.Files[0]
		}
	}
	if len(only) != 2 || only["3des-cbc"] != 0 || only["mlkem768x25519-sha256"] != 1 {
		t.Errorf("in one file only: %v", only)
	}
	if len(unmeasured) != 2 || unmeasured[gcm256] != 1 || unmeasured[chacha] != 0 {
		t.Errorf("not measured: %v", unmeasured)
	}
	if len(c.Defaults) != 2 || c.Defaults[1].Kex != "mlkem768x25519-sha256" {
		t.Errorf("defaults: %v", c.Defaults)
	}
	b.Campaign.Present.Kex = "curve25519-sha256"
	if c := related2(t, a, b); len(c.Defaults) > 0 {
		t.Errorf("the same default under two names: %v", c.Defaults)
	}
}
