package advise_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

const (
	gcm128 = "aes128-gcm@openssh.com"
	gcm256 = "aes256-gcm@openssh.com"
	chacha = "chacha20-poly1305@openssh.com"
	etm    = "hmac-sha2-256-etm@openssh.com"
	umac   = "umac-128-etm@openssh.com"
)

// figureAt is known within 2 %.
func figureAt(v float64) rank.Figure {
	e := stats.Estimate{Log: math.Log(v), Err: 0.01, N: 9}
	return rank.Figure{Estimate: e, Shown: e.OrNil()}
}

// cell is a measured cell.
func cell(group, cipher, mac string, mbps float64) rank.Cell {
	side := figureAt(500 / mbps)
	s := alg.NewSuite(cipher, mac, "")
	return rank.Cell{
		Suite: s, Direction: record.Upload, Group: group, Basis: rank.Measured, Status: s.Status(),
		Throughput: figureAt(mbps * 1e6), Sides: rank.Sides{Client: side, Server: side, Total: figureAt(1000 / mbps)},
	}
}

func ranking(strict *bool) *rank.Ranking {
	r := &rank.Ranking{
		Bulk: []rank.Cell{
			cell("A", "arcfour", "hmac-md5", 2000), cell("B", gcm256, "", 1400), cell("B", gcm128, "", 1395),
			cell("C", "aes128-ctr", umac, 800), cell("D", chacha, "", 600), cell("E", "aes128-ctr", etm, 400),
			cell("F", "3des-cbc", etm, 30),
		},
		Kex: []rank.Exchange{
			{Name: "curve25519-sha256", Aliases: []string{"curve25519-sha256@libssh.org"}, Group: "A", Login: figureAt(50e6)},
			{Name: "diffie-hellman-group1-sha1", Group: "A", Login: figureAt(50e6)},
			{Name: "sntrup761x25519-sha512@openssh.com", Group: "B", Login: figureAt(60e6)},
		},
		Environment: record.Environment{StrictKex: strict, Client: "OpenSSH_9.2p1", Server: "OpenSSH_9.2\nCiphers none"},
	}
	r.Campaign.Target, r.Campaign.Server = "loopback", "openssh"
	for _, c := range r.Bulk {
		r.Campaign.Offer.Ciphers = append(r.Campaign.Offer.Ciphers, c.Suite.Cipher)
	}
	r.Campaign.Offer.MACs = []string{"hmac-md5", etm, umac}
	r.Campaign.Offer.Kex = []string{"diffie-hellman-group1-sha1", "curve25519-sha256", "curve25519-sha256@libssh.org", "sntrup761x25519-sha512@openssh.com"}
	return r
}

var present = alg.Offer{
	Ciphers: []string{chacha, "aes128-ctr", gcm128, gcm256}, MACs: []string{etm, umac, "hmac-sha1"},
	Kex: []string{"curve25519-sha256", "sntrup761x25519-sha512@openssh.com"},
}

func advice(t *testing.T, r *rank.Ranking, p advise.Policy) *advise.Advice {
	t.Helper()
	a, err := advise.New(advise.Params{Ranking: r, Policy: p, Client: advise.Side{Offer: present}, Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func named(t *testing.T, name string) advise.Policy {
	t.Helper()
	p, err := advise.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestFastestOfWhatIsAllowed(t *testing.T) {
	a := advice(t, ranking(new(true)), named(t, "modern"))
	want := [][]string{
		{gcm256, gcm128, "aes128-ctr", chacha}, // the two equal ones in the order of the run's offer
		{umac, etm},
		{"sntrup761x25519-sha512@openssh.com", "curve25519-sha256", "curve25519-sha256@libssh.org"},
	}
	for i, list := range a.Lists {
		if diff := cmp.Diff(want[i], list.Names()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", list.Kind.Keyword(), diff)
		}
	}
	if a.Present.Cipher != chacha || a.Advised.Cipher != gcm256 || a.Advised.MAC != "" || !a.Choice.Matters() || !a.Choice.Limited(a.Ranking) {
		t.Errorf("present %s, advised %s, matters %v, limited %v", a.Present, a.Advised, a.Choice.Matters(), a.Choice.Limited(a.Ranking))
	}
	// 1400 / 600 = 2.333; each interval is ±2 %, together ±2.8 %.
	g := a.Choice.Gains[0]
	if g.Throughput.Value < 2.33 || g.Throughput.Value > 2.34 || g.Throughput.Lo < 2.25 || g.Throughput.Hi > 2.40 || g.Cost.Lo < 2.2 {
		t.Errorf("gain: throughput %+v, cost %+v", g.Throughput, g.Cost)
	}
	for _, config := range []string{a.ClientConfig("nas"), a.ServerConfig()} {
		for line := range strings.Lines(config) {
			words := strings.Fields(line)
			if words[0] != "#" && !slices.Contains([]string{"Host", "Ciphers", "MACs", "KexAlgorithms"}, words[0]) {
				t.Errorf("line %q: text of a host became configuration", line)
			}
			if words[0] != "#" && (strings.Contains(line, "arcfour") || strings.Contains(line, "3des") || strings.Contains(line, "sha1")) {
				t.Errorf("line %q: weak algorithms are advised", line)
			}
		}
	}
	if list := a.Insecure(); len(list) != 1 || !strings.Contains(list[0].Name, "arcfour") {
		t.Errorf("insecure: %+v", list)
	}
}

func TestTerrapin(t *testing.T) {
	for name, strict := range map[string]*bool{"unknown": nil, "no": new(false)} {
		a := advice(t, ranking(strict), named(t, "modern"))
		dropped := a.Lists[0].Dropped
		if slices.Contains(a.Lists[0].Names(), chacha) || len(dropped) != 1 || !strings.Contains(dropped[0].Reason, "CVE-2023-48795") {
			t.Errorf("strict key exchange %s: %q, dropped %+v", name, a.Lists[0].Names(), dropped)
		}
	}
}

// A configuration that shares nothing with the server is known well: it does not work.
func TestCannotConnect(t *testing.T) {
	server := alg.Offer{Ciphers: []string{gcm128, "aes128-ctr"}, MACs: []string{etm}, Kex: []string{"curve25519-sha256"}}
	for _, test := range []struct {
		client alg.Offer
		want   alg.Kind
		says   string
	}{
		{alg.Offer{Ciphers: []string{"3des-cbc"}, MACs: []string{"hmac-md5"}, Kex: server.Kex}, alg.Cipher, "shares no cipher with this server"},
		{alg.Offer{Ciphers: []string{"aes128-ctr"}, MACs: []string{"hmac-md5"}, Kex: server.Kex}, alg.MAC, "shares no MAC with this server"},
		{alg.Offer{Ciphers: []string{gcm128}, MACs: []string{"hmac-md5"}, Kex: []string{"x"}}, alg.Kex, "shares no key exchange with this server"},
		{alg.Offer{Ciphers: []string{gcm128}, MACs: []string{"hmac-md5"}, Kex: server.Kex}, "", ""},
		{alg.Offer{}, "", ""},
	} {
		a, err := advise.New(advise.Params{Ranking: ranking(new(true)), Policy: named(t, "modern"), Client: advise.Side{Offer: test.client}, Server: advise.Side{Offer: server}})
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(a.Notes, "\n")
		if a.Severed != test.want || !strings.Contains(a.CannotConnect(), test.says) || !strings.Contains(notes, test.says) {
			t.Errorf("%+v: severed by %q, which says %q; notes:\n%s", test.client, a.Severed, a.CannotConnect(), notes)
		}
		if a.Severed != "" && (a.Present != alg.Suite{} || strings.Contains(notes, "is unknown")) {
			t.Errorf("%+v: present is %+v; notes:\n%s", test.client, a.Present, notes)
		}
	}
	r := ranking(new(true)) // of a choice, to a server of which nothing else is known
	r.Campaign.Offer.Ciphers = []string{gcm128}
	a, err := advise.New(advise.Params{Ranking: r, Policy: named(t, "modern"), Client: advise.Side{Offer: alg.Offer{Ciphers: []string{chacha}, Kex: server.Kex}}})
	if err != nil || a.Severed != "" || !strings.Contains(strings.Join(a.Notes, "\n"), "is unknown") {
		t.Errorf("what the server accepts is not known, but severed is %q, notes %q, %v", a.Severed, a.Notes, err)
	}
}

// What is left out is counted, and not in the configuration.
func TestLeftOut(t *testing.T) {
	p := advise.Params{Ranking: ranking(new(true)), Policy: named(t, "modern"), Client: advise.Side{Offer: present}}
	p.Client.Offer.MACs = append([]string{"hmac-sha2-512", "hmac-sha2-256"}, present.MACs...)
	p.Strict = true
	a, err := advise.New(p)
	if err != nil {
		t.Fatal(err)
	}
	if left := a.LeftOut(); left != 3 {
		t.Errorf("left out: %d, want two MACs that are acceptable only, and hmac-sha1", left)
	}
	if config := a.ClientConfig("*") + a.ServerConfig(); strings.Contains(config, "hmac-sha1") {
		t.Errorf("what is left out is in the configuration:\n%s", config)
	}
}

// No policy, not even one that allows everything, gets weak, broken or unknown names advised.
func TestNeverWeak(t *testing.T) {
	r := ranking(new(true))
	r.Campaign.Offer.Ciphers = append(r.Campaign.Offer.Ciphers, "rot13")
	for _, p := range alg.Policies() {
		a, err := advise.New(advise.Params{Ranking: r, Policy: named(t, p.Name), Client: advise.Side{Offer: present}})
		if errors.Is(err, advise.ErrNothing) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range a.Lists {
			for _, c := range list.Choices {
				facts, _ := alg.Lookup(list.Kind, c.Name)
				if facts.Status != alg.Strong && facts.Status != alg.Acceptable {
					t.Errorf("%s: %s is advised, which is %q", p.Name, c.Name, facts.Status)
				}
				if c.Reason == "" {
					t.Errorf("%s: %s has no reason", p.Name, c.Name)
				}
			}
		}
	}
}

func TestTie(t *testing.T) {
	r := ranking(new(true))
	for i := range r.Bulk {
		r.Bulk[i].Throughput.Estimate = stats.Estimate{Log: 20, Err: 0.005, N: 9}
		r.Bulk[i].Total.Estimate = stats.Estimate{Log: 0.1, Err: 0.005, N: 9}
	}
	a := advice(t, r, named(t, "modern"))
	if a.Advised.Cipher != chacha || a.Choice.Matters() {
		t.Errorf("all are equal, and %s is advised instead of %s", a.Advised, a.Present)
	}
}

// A slow link hides what ciphers cost.
func TestLinkIsTheLimit(t *testing.T) {
	r := ranking(new(true))
	r.Campaign.Server = "remote"
	for i := range r.Bulk {
		r.Bulk[i].Throughput = rank.Figure{
			Estimate: stats.Estimate{Log: math.Log(11e6), Err: 0.005, N: 9}, Shown: &stats.Interval{Value: 11e6, Lo: 10.9e6, Hi: 11.1e6, N: 9},
		}
	}
	if a := advice(t, r, named(t, "modern")); a.Choice.Limited(a.Ranking) {
		t.Error("at 11 MB/s and less than 1 ns/B, the CPU is said to be the limit")
	}
	// A cipher that has another speed shows that the link is not.
	for i := range r.Bulk {
		if r.Bulk[i].Suite.Cipher == gcm256 {
			r.Bulk[i].Throughput.Log -= 0.5
		}
	}
	if a := advice(t, r, named(t, "modern")); !a.Choice.Limited(a.Ranking) {
		t.Error("one cipher is slower by a third, and the link is said to be the limit")
	}
}

func TestPolicyFile(t *testing.T) {
	p, err := advise.ParsePolicy(`cipher = ["aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "3des-cbc"]
classical = true
`, "mine")
	if err != nil {
		t.Fatal(err)
	}
	a := advice(t, ranking(nil), p)
	if diff := cmp.Diff([]string{gcm256, gcm128}, a.Lists[0].Names()); diff != "" || a.Policy != "mine" {
		t.Errorf("policy %s, ciphers (-want +got):\n%s", a.Policy, diff)
	}
	if a.Lists[2].Names()[0] != "curve25519-sha256" {
		t.Errorf("classical key exchanges are welcome, but first is %s", a.Lists[2].Names()[0])
	}
	for _, bad := range []string{`cipher = ["rot13"]`, `ciphers = ["aes128-ctr"]`, `cipher = "aes128-ctr"`, `cipher = [`, "name = \"a\\u001bb\""} {
		if _, err := advise.ParsePolicy(bad, "x"); err == nil {
			t.Errorf("%s was taken for a policy", bad)
		}
	}
	none, err := advise.ParsePolicy(`cipher = []`, "none")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := advise.New(advise.Params{Ranking: ranking(nil), Policy: none, Client: advise.Side{Offer: present}}); !errors.Is(err, advise.ErrNothing) {
		t.Errorf("a policy without ciphers: %v", err)
	}
}
