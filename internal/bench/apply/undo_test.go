package apply_test

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/seedtest"
	"sshpace/internal/bench/apply"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/compare"
	"sshpace/internal/bench/rank"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/safedir"
)

func TestMain(m *testing.M) {
	benchtest.Serve()
	os.Exit(m.Run())
}

// configs are what users have in their ssh_config.
var configs = sshtest.Grammar{
	"file":    {"", "\n", "<line>", "<line>\n<line>\n", "<line>\n<line>\n<host>\n<line>\n<host>\n<line>", "<host>\n<line>\n\n<line>\n<line>\n", "# mine\n<line>\n<host>\n<line>\n", "<line>\r\n<host>\r\n<line>\r\n"},
	"line":    {"Include DIR/conf.d/*.conf", "Include DIR/conf.d/*.conf", "Include \"DIR/conf.d/*\"", "Compression yes", "  User me", "# a comment", "", "\t", "Ciphers aes256-ctr", "  Ciphers ^aes256-gcm@openssh.com", "Ciphers -3des-cbc", "MACs hmac-sha1"},
	"host":    {"Host <pattern>", "Host <pattern>", "Host <pattern> <pattern>", "host=<pattern>", "Match host <pattern>", "Match all"},
	"pattern": {"nas", "nas*", "other", "*", "!nas", "web?"},
	"later":   {"", "", "# later", "<line>\n", "Host later\n  Port 2222\n"},
}

// Whatever an ssh_config holds, ssh follows what was written into it or into the directory that it
// includes, or nothing is changed; and undone, it is what it was, with what came later.
func TestUndoLeavesWhatWasThere(t *testing.T) {
	ranking, err := compare.RankFile("../../cli/testdata/recorded/before.jsonl", rank.Auto)
	if err != nil {
		t.Fatal(err)
	}
	workdir, _ := benchtest.Workdir(t, safedir.WorkdirParams{InMemory: true})
	count, seed := seedtest.Cases(t, 40)
	undone := 0
	for n := range count {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		dir := t.TempDir()
		config, extra := filepath.Join(dir, "config"), filepath.Join(dir, "conf.d", "00-sshpace.conf")
		fill := func(symbol string) string { return strings.ReplaceAll(configs.Make(rng, symbol), "DIR", dir) }
		before, later := fill("<file>"), fill("<later>")
		put := func(text string) {
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Mkdir(filepath.Dir(extra), 0o700); err != nil {
			t.Fatal(err)
		}
		put(before)
		var said bytes.Buffer
		p := apply.Params{Ranking: ranking, Policy: "modern", Pattern: []string{"nas", "nas*", "*"}[rng.IntN(3)], Sides: "client", Dir: workdir, Out: &said, Notes: &said}
		p.Flags.Config = config
		fails := func(what, text string) {
			t.Errorf("SSHPACE_SEED=%d, case %d, --host %q: %s\n%q, now\n%q\n%s", seed, n, p.Pattern, what, before, text, &said)
		}
		if err := written(t.Context(), p); err != nil {
			if got := read(config); got != before || read(extra) != "" {
				fails("changed, in spite of "+err.Error(), got)
			}
			continue
		}
		first := read(config)
		if err := written(t.Context(), p); err != nil || read(config) != first {
			fails("the second time it is changed again", read(config))
		}
		if later != "" {
			later = "\n" + later
		}
		put(first + later)
		if err := apply.Undo(t.Context(), p); err != nil {
			fails(err.Error(), read(config))
			continue
		}
		if got := read(config); lines(got) != lines(before+later) || later == "" && strings.TrimSuffix(got, "\n") != strings.TrimSuffix(before, "\n") || read(extra) != "" {
			fails("not what it was", got)
		}
		if first != before {
			undone++
		}
	}
	if undone < count/4 {
		t.Errorf("only %d of %d were written", undone, count)
	}
}

// written makes the advice and writes it.
func written(ctx context.Context, p apply.Params) error {
	a, err := apply.New(ctx, p)
	if err != nil {
		return err
	}
	return a.Write(ctx)
}

// read is what a file holds; "" where there is none.
func read(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}

// lines are the lines of a text that hold anything: an empty one may part what was there from what
// came later. A last line without an end keeps the one that it was given.
func lines(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "\n")
}
