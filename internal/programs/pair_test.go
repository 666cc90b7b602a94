package programs

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/waittest"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/helper"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/bench/rounds"
	"sshpace/internal/bench/transfer"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/relay"
	"sshpace/internal/sys/safedir"
)

func TestMain(m *testing.M) {
	if exit, ran := helper.Run(context.Background(), os.Args, os.Stderr, Helpers); ran {
		os.Exit(exit)
	}
	os.Exit(m.Run())
}

// bench is a private directory in memory with the keys of a run.
func bench(t *testing.T) *Setup {
	t.Helper()
	dir, spawner := benchtest.Workdir(t, safedir.WorkdirParams{InMemory: true})
	keys, err := loopback.MakeKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return &Setup{
		Site: loopback.Site{Dir: dir, Spawner: spawner, Helper: helper.Line, Keys: keys}, User: me.Username, Home: me.HomeDir, Connect: 10 * time.Second,
	}
}

// serve starts the servers that are installed.
func serve(t *testing.T, b *Setup) []Server {
	t.Helper()
	servers, missing := b.servers(t.Context(), nil)
	t.Cleanup(func() {
		for _, s := range servers {
			s.Close()
		}
	})
	for _, maker := range []string{"openssh", "dropbear", "tinyssh", "sshpace"} {
		if missing[maker] != nil {
			t.Errorf("server %s: %v", maker, missing[maker])
		}
	}
	return servers
}

// straight are servers without a path before them.
func straight(t *testing.T, servers []Server) []endpoint {
	t.Helper()
	all, err := endpointsOf(servers, nil, new(relay.Group))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// unpaired are the pairs that cannot be, and a word of the reason.
var unpaired = map[string]string{
	"psftp sshpace": "SFTP",
	"curl sshpace":  "SFTP",
	"curl tinyssh":  "cipher",
	// TinySSH does no strict key exchange, without which ChaCha20 is open to Terrapin.
	"putty tinyssh": "vulnerable",
	"psftp tinyssh": "vulnerable",
}

// Every client logs in to every server and what it sends arrives, or the reason is one that cannot
// be helped.
func TestAllPairs(t *testing.T) {
	b := bench(t)
	servers := serve(t, b)
	clients, missing := b.clients(t.Context(), nil)
	for _, maker := range []string{"openssh", "openssh-legacy", "dropbear", "putty", "psftp", "curl", "sshpace"} {
		if missing[maker] != nil {
			t.Errorf("client %s: %v", maker, missing[maker])
		}
	}
	files := &transfer.Files{Directory: b.Dir.Path, Random: true}
	pairs := b.pairs(t.Context(), clients, straight(t, servers), Params{AES: true}, files)
	servers = slices.DeleteFunc(slices.Clone(servers), func(s Server) bool { return s.Maker == oldCipherServer })
	if len(pairs) != len(clients)*len(servers) {
		t.Fatalf("%d pairs of %d clients and %d servers", len(pairs), len(clients), len(servers))
	}
	for i, p := range pairs {
		key := clients[i/len(servers)].Maker + " " + servers[i%len(servers)].Maker
		why := p.Why
		if why == "" {
			if err := p.Check(t.Context(), 100_000); err != nil {
				why = err.Error()
			}
		}
		if want := unpaired[key]; (want == "") != (why == "") || !strings.Contains(why, want) {
			t.Errorf("%s, %s: %q, want %q", key, p.Suite, why, want)
		}
	}
	if _, err := os.Stat(b.Dir.File("arrived")); err == nil {
		t.Error("what arrived was not removed")
	}
}

// The figures of a pair are those of its runs, CPU of both sides included.
func TestPairsTakeTurns(t *testing.T) {
	b := bench(t)
	servers := serve(t, b)
	clients, _ := b.clients(t.Context(), nil)
	files := &transfer.Files{Directory: b.Dir.Path, Random: true}
	waittest.Until(t, "a figure of every round", func() bool { // other work may leave one without
		chosen := slices.DeleteFunc(b.pairs(t.Context(), clients, straight(t, servers), Params{AES: true}, files), func(c *transfer.Subject) bool {
			return !strings.HasPrefix(c.Server, "openssh") || !strings.HasPrefix(c.Client, "openssh 9") && !strings.HasPrefix(c.Client, "curl")
		})
		out := record.File{}
		schedule := transfer.Turns{Plan: rounds.Plan{Rounds: sched.Rounds{Count: 2}}, Size: 64 << 20}
		if err := schedule.Measure(t.Context(), t.Context(), chosen, out.Sink()); err != nil {
			t.Fatal(err)
		}
		results := compare.MethodResults(&out)
		if len(results) != 2 || len(out.Readings) < 2*2*3 {
			t.Fatalf("%d results of %d runs", len(results), len(out.Readings))
		}
		whole := len(out.Readings) == 2*2*3
		for _, r := range results {
			if r.Login.Value <= 0 || len(r.Failed) > 0 {
				t.Errorf("%s: %+v", r.Client, r)
			}
			whole = whole && r.Rate.N == 2 && r.Rate.Value >= 1e6 && r.ClientCost.Value > 0 && r.ServerCost.Value > 0
		}
		return whole
	})
	if left, _ := filepath.Glob(filepath.Join(b.Dir.Path, "sink.*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// What a client is told to use is what it offers.
func TestNegotiated(t *testing.T) {
	b := bench(t)
	servers := serve(t, b)
	clients, _ := b.clients(t.Context(), nil)
	i := slices.IndexFunc(servers, func(s Server) bool { return s.Maker == "openssh" })
	for _, c := range clients {
		if c.Maker != "putty" && c.Maker != "openssh" && c.Maker != "dropbear" {
			continue
		}
		for _, cipher := range []string{"aes256-ctr", "chacha20-poly1305@openssh.com"} {
			got, err := b.negotiated(t.Context(), c, servers[i], alg.NewSuite(cipher, "hmac-sha2-256", ""))
			if err != nil || got.Cipher != cipher {
				t.Errorf("%s told to use %s: %v, %v", c.Name, cipher, got, err)
			}
		}
	}
}

// The ciphers of the old articles: the legacy client of OpenSSH 7.5 has them, and of servers ours.
func TestOldCiphers(t *testing.T) {
	b := bench(t)
	servers := serve(t, b)
	clients, missing := b.clients(t.Context(), nil)
	if missing["openssh-legacy"] != nil {
		t.Fatal(missing["openssh-legacy"])
	}
	files := &transfer.Files{Directory: b.Dir.Path}
	for cipher, server := range map[string]string{"arcfour": native, "3des-cbc": native, "blowfish-cbc": oldCipherServer, "cast128-cbc": oldCipherServer} {
		old := Params{Only: []string{legacy + ":" + server}, Ciphers: []string{cipher}, MAC: "hmac-sha1"}
		for _, p := range b.pairs(t.Context(), clients, straight(t, servers), old, files) {
			if p.Why != "" || p.Suite.Cipher != cipher {
				t.Errorf("%s: %s, %s", cipher, p.Suite, p.Why)
				continue
			}
			if reading, err := p.Run(t.Context(), 1<<20); err != nil || reading.Server <= 0 {
				t.Errorf("%s: %+v, %v", cipher, reading, err)
			}
			if err := p.Check(t.Context(), 1<<20); err != nil {
				t.Errorf("%s: %v", cipher, err)
			}
		}
	}
}

// TestBuildsOfOneVersion: two builds that say the same of themselves are told apart by their paths,
// and one that the user has named by that name; a program is not there twice.
func TestBuildsOfOneVersion(t *testing.T) {
	b := bench(t)
	installed := proc.Find("ssh")
	text, err := os.ReadFile(installed)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "ssh")
	if err := os.WriteFile(other, text, 0o700); err != nil {
		t.Fatal(err)
	}
	names := func(builds ...Build) (out []string) {
		clients, _ := b.clients(t.Context(), builds)
		for _, c := range clients {
			if c.Maker == "openssh" {
				out = append(out, c.Name)
			}
		}
		return out
	}
	version := names()[0]
	for _, c := range []struct {
		builds []Build
		want   []string
	}{
		{[]Build{{"", other}}, []string{version + " " + other, version + " " + installed}},
		{[]Build{{"", installed}}, []string{version}},
		{[]Build{{"new", other}}, []string{"new", version}},
		{[]Build{{"old", installed}, {"new", other}}, []string{"old", "new"}},
	} {
		if got := names(c.builds...); !slices.Equal(got, c.want) {
			t.Errorf("%v: %q, want %q", c.builds, got, c.want)
		}
	}
	for only, want := range map[string]bool{"new:openssh": true, "openssh:*": true, "n*:*": true, "old:openssh": false} {
		if (Params{Only: []string{only}}).chosen(Client{Name: "new", Maker: "openssh"}, Server{Name: "openssh 9", Maker: "openssh"}) != want {
			t.Errorf("--only %s: chosen: %v", only, !want)
		}
	}
	for _, odd := range []string{"new", "=/a", "new=", "a:b=/a", "a b=/a", "a\x1b=/a"} {
		if _, _, err := Named(odd); err == nil {
			t.Errorf("%q is a name", odd)
		}
	}
	if err := Check([]string{"new:openssh"}, nil, nil, []Build{{"new", other}}, nil); err != nil {
		t.Error(err)
	}
	if Check(nil, nil, nil, []Build{{"openssh", other}}, nil) == nil || Check(nil, nil, nil, []Build{{"new", other}, {"new", other}}, nil) == nil {
		t.Error("one name for two programs")
	}
}
