package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/ssh/knownhosts"
)

// TestReadInputGivesUp: Ctrl-C must work while someone is typing a list.
func TestReadInputGivesUp(t *testing.T) {
	in, held := io.Pipe()
	defer held.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	time.AfterFunc(10*time.Millisecond, func() { cancel(stop) })
	if _, err := readInput(ctx, in); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if text, err := readInput(t.Context(), strings.NewReader("db1\n")); string(text) != "db1\n" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
}

// TestHostsFileTakesBothBrackets: a port as in known_hosts, a range as in a set.
func TestHostsFileTakesBothBrackets(t *testing.T) {
	list := filepath.Join(t.TempDir(), "hosts")
	text := "[git.example.com]:7999\nroot@[db1]:2222 # comment\n  [10.0.0.1]:22\nweb[1-2]:2200\n[::1]:2222\nplain\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	hosts, err := (&hostFlags{files: []string{list}, config: "none"}).hosts(t.Context(), System{Getenv: os.Getenv})
	if err != nil {
		t.Fatal(err)
	}
	want := "[git.example.com]:7999 [db1]:2222 10.0.0.1 [web1]:2200 [web2]:2200 [::1]:2222 plain"
	if got := strings.Join(knownNames(hosts), " "); got != want {
		t.Errorf("hosts %s, want %s", got, want)
	}
}

func TestSplitVerdictFailsOnNamesThatAreLost(t *testing.T) {
	var out strings.Builder
	if err := splitVerdict(&out, knownhosts.SplitResult{Unsafe: []string{`"a b" has blanks`}}); err == nil {
		t.Error("no error")
	}
	names := strings.Fields("a b c d e f g")
	if err := splitVerdict(&out, knownhosts.SplitResult{Kept: names, Missing: names, Unresolved: names, Unmatched: 2}); err != nil {
		t.Error(err)
	}
	if got := strings.Count(out.String(), "a, b, c, d, e and 2 more"); got != 3 {
		t.Errorf("%d lists in\n%s", got, out.String())
	}
}

func TestProgressLineWaitsASecond(t *testing.T) {
	var out strings.Builder
	p := newProgressLine(System{Stderr: &out}, "files")
	p.report(1, 10)
	p.next = time.Now().Add(-time.Millisecond)
	p.report(2, 10)
	p.report(3, 10)
	if out.String() != "sshpace: 2 of 10 files\n" {
		t.Errorf("printed %q", out.String())
	}
}

func TestCostAdvice(t *testing.T) {
	ms := func(lo, value, hi float64) stats.Interval {
		return stats.Interval{Value: value * 1e6, Lo: lo * 1e6, Hi: hi * 1e6, N: 9}
	}
	for _, c := range []struct {
		update, plain stats.Interval
		want, not     string
	}{
		{ms(-0.2, 0.1, 0.4), ms(-0.2, 0.1, 0.4), "nothing to gain", "UpdateHostKeys"},
		{ms(130, 137, 140), ms(3, 3.5, 4), "saves ssh 137 ms", "nothing"},
		{ms(130, 137, 140), ms(3, 3.5, 4), "UpdateHostKeys no saves 126 ms", "nothing"},
		{ms(4, 5, 6), ms(3, 4.5, 6), "saves ssh 5 ms", "UpdateHostKeys"},
	} {
		got := costAdvice(knownhosts.Cost{OpenSSH: []knownhosts.SSHCost{
			{Layout: "plain", AsItIs: true, UpdateHostKeys: true, Extra: c.update},
			{Layout: "hashed", UpdateHostKeys: true, Extra: ms(900, 900, 900)},
			{Layout: "plain", AsItIs: true, Extra: c.plain},
		}})
		if !strings.Contains(got, c.want) || strings.Contains(got, c.not) {
			t.Errorf("advice %q, want %q", got, c.want)
		}
	}
}
