package advise

import (
	"math"
	"testing"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// rankingOf is what a comparison with chacha20-poly1305 showed: by how much each candidate is
// faster, and the standard error of that, as a logarithm.
func rankingOf(candidates map[string][2]float64) *rank.Ranking {
	strict := true
	r := &rank.Ranking{By: rank.Throughput, Environment: record.Environment{StrictKex: &strict}}
	r.Campaign.Server, r.Campaign.Present = record.ServerRemote, alg.NewSuite("chacha20-poly1305@openssh.com", "", "curve25519-sha256")
	candidates["chacha20-poly1305@openssh.com"] = [2]float64{1, 0}
	for cipher, c := range candidates {
		e := stats.Estimate{Log: math.Log(600e6 * c[0]), Err: c[1], N: 1}
		r.Bulk = append(r.Bulk, rank.Cell{
			Suite: alg.NewSuite(cipher, "", ""), Direction: record.Upload, Status: alg.Strong, Throughput: rank.Figure{Estimate: e, Shown: e.OrNil()},
		})
	}
	return r
}

// What was not measured may be better than all that was.
func TestUnseen(t *testing.T) {
	r := rankingOf(map[string][2]float64{})
	r.Missing = []alg.Suite{alg.NewSuite("aes128-gcm@openssh.com", "", ""), alg.NewSuite("3des-cbc", "hmac-sha1", "")}
	if x := Of(r, Options{}); x.Verdict != stats.NotEnough || x.Unseen != 1 {
		t.Errorf("only what is used now was measured: %s, %d unseen", x.Verdict, x.Unseen)
	}
}

// What is used now looks limited by the link where it waits for a core that other work keeps busy:
// only a machine that has cores left shows that no cipher can help.
func TestLimitBesideOtherWork(t *testing.T) {
	r := rankingOf(map[string][2]float64{})
	r.Missing = []alg.Suite{alg.NewSuite("aes128-gcm@openssh.com", "", "")}
	known := func(v float64) rank.Figure {
		e := stats.Estimate{Log: math.Log(v), Err: 0.15, N: 1}
		return rank.Figure{Estimate: e, Shown: e.OrNil()}
	}
	cost := known(1.2) // ns/byte, of 600e6 bytes/s: not idle
	r.Bulk[0].Throughput, r.Bulk[0].Sides = known(74e6), rank.Sides{Client: cost, Server: cost, Total: known(2.4)}
	for busy, want := range map[float64]stats.Verdict{0.4: stats.Equal, 1.99: stats.NotEnough} {
		r.Limits = []record.Limit{{What: "unknown", Evidence: record.Evidence{OwnCores: 2, BusyCores: busy}}}
		if x := Of(r, Options{}); x.Verdict != want {
			t.Errorf("%g of 2 cores are busy, and one combination was measured: %s, want %s", busy, x.Verdict, want)
		}
	}
}

// A limit that was seen, and that no cipher changes, decides where figures do not; one that is
// surely better, or a CPU, does not let it.
func TestLimitDecides(t *testing.T) {
	const gcm128 = "aes128-gcm@openssh.com"
	for _, c := range []struct {
		limits []string
		ratio  [2]float64
		want   stats.Verdict
	}{
		{[]string{record.LimitWindow}, [2]float64{1.23, 0.1}, stats.Equal},
		{[]string{record.LimitWindow, record.LimitLink}, [2]float64{1.23, 0.1}, stats.Equal},
		{[]string{record.LimitWindow, record.LimitClientCPU}, [2]float64{1.23, 0.1}, stats.NotEnough},
		{[]string{record.LimitUnknown}, [2]float64{1.23, 0.1}, stats.NotEnough},
		{nil, [2]float64{1.23, 0.1}, stats.NotEnough},
		{[]string{record.LimitWindow}, [2]float64{1.6, 0.05}, stats.Better},
	} {
		r := rankingOf(map[string][2]float64{gcm128: c.ratio, "aes256-gcm@openssh.com": {0.95, 0.2}})
		r.Campaign.Server = record.ServerRemote
		for _, what := range c.limits {
			r.Limits = append(r.Limits, record.Limit{What: what, Evidence: record.Evidence{OwnCores: 2, BusyCores: 1.99}})
		}
		x := Of(r, Options{})
		if x.Verdict != c.want || x.Elsewhere != (c.want == stats.Equal) || x.Elsewhere && (x.Limited(r) || !x.Stays()) {
			t.Errorf("%v, %v: %s, elsewhere %v", c.limits, c.ratio, x.Verdict, x.Elsewhere)
		}
	}
}

// The three answers: better, equal, and not enough data, which is never called equal.
func TestVerdict(t *testing.T) {
	const gcm128, gcm256 = "aes128-gcm@openssh.com", "aes256-gcm@openssh.com"
	for _, c := range []struct {
		name       string
		candidates map[string][2]float64
		want       stats.Verdict
		first      string
		tied       int
	}{
		{"clearly faster", map[string][2]float64{gcm128: {1.6, 0.05}, gcm256: {1.1, 0.05}}, stats.Better, gcm128, 1},
		{"the better one is taken, not the one that only looks so", map[string][2]float64{gcm128: {1.6, 0.05}, gcm256: {1.8, 0.5}}, stats.Better, gcm128, 1},
		{"two alike", map[string][2]float64{gcm128: {1.6, 0.005}, gcm256: {1.61, 0.005}}, stats.Better, "", 2},
		{"no difference to anybody", map[string][2]float64{gcm128: {1.02, 0.005}, gcm256: {0.99, 0.005}}, stats.Equal, "", 3},
		{"slower ones are no reason to go on", map[string][2]float64{gcm128: {1.01, 0.01}, gcm256: {0.5, 0.3}}, stats.Equal, "", 2},
		{"the only one that is better", map[string][2]float64{gcm128: {1.12, 0.053}}, stats.Better, gcm128, 1},
		{"the better of two, by chance", map[string][2]float64{gcm128: {1.12, 0.053}, gcm256: {1.0, 0.05}}, stats.NotEnough, gcm128, 1},
		{"hardly measured", map[string][2]float64{gcm128: {1.6, 0.4}, gcm256: {0.9, 0.4}}, stats.NotEnough, gcm128, 1},
		{"one that is hardly measured may be better", map[string][2]float64{gcm128: {1.0, 0.01}, gcm256: {0.99, 0.2}}, stats.NotEnough, "", 2},
	} {
		x := Of(rankingOf(c.candidates), Options{})
		if x.Verdict != c.want || x.Tied != c.tied || c.first != "" && x.Options[0].Suite.Cipher != c.first {
			t.Errorf("%s: %s, first %s of %d; want %s, %s of %d", c.name, x.Verdict, x.Options[0].Suite.Cipher, x.Tied, c.want, c.first, c.tied)
		}
		if x.Stays() != (c.want == stats.Equal) || x.Matters() != (c.want == stats.Better) || x.Uncertain() != (c.want == stats.NotEnough) {
			t.Errorf("%s: stays %v, matters %v, uncertain %v", c.name, x.Stays(), x.Matters(), x.Uncertain())
		}
	}
}
