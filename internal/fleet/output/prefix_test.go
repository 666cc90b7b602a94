package output

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

func TestPrefix(t *testing.T) {
	var o, e bytes.Buffer
	p := newPrefix(prefixOptions{Out: &o, Err: &e, Width: 5, MaxLine: 10})
	play(t, p,
		out(0, "web1", "one\ntw"), out(1, "db1", "x\r\ny\rz\n\n"), out(0, "web1", "o\n"),
		stderr(0, "web1", "oops"), out(1, "db1", "0123456789abcdefghijklm\nend"),
		exited(0, "web1", 3), refused(2, "web2"), refused(3, "web3"), exited(1, "db1", 0))
	wantOut := `web1  -> one
db1   -> x
db1   -> y
db1   -> z
db1   -> 
web1  -> two
db1   -> 0123456789
db1   +> abcdefghij
db1   +> klm
db1   -> end
`
	wantErr := `web1  => oops
web1  =: exit 3
web2  =: unreachable: connection refused
web2  =: hint: is sshd running there?
web3  =: unreachable: connection refused
`
	if diff := cmp.Diff(wantOut, o.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantErr, e.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

// Whatever a host sends, in whatever pieces, every line that comes out begins with its own name,
// and no control character survives.
func TestPrefixCannotBeForged(t *testing.T) {
	hostile := "\nweb2 -> forged\r\nweb2 -> x\rweb2 =: exit 0\x0bweb2\x0c\x85web2\u0085\u2028web2 -> y\x1b[1A\x1b[2Kweb2 -> z\x1bEweb2\x1b]0;t\x07\u202e"
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var o, e bytes.Buffer
		p := newPrefix(prefixOptions{Out: &o, Err: &e, MaxLine: 1 + r.IntN(40)})
		rest := hostile
		for rest != "" {
			n := 1 + r.IntN(len(rest))
			play(t, p, out(0, "evil", rest[:n]))
			rest = rest[n:]
		}
		play(t, p, exited(0, "evil", 0))
		for line := range strings.Lines(o.String()) {
			if !strings.HasPrefix(line, "evil -> ") && !strings.HasPrefix(line, "evil +> ") {
				t.Fatalf("line %q", line)
			}
			if strings.ContainsAny(line, "\r\x0b\x0c\x1b\u0085\u2028\u202e") {
				t.Fatalf("line %q has a control character", line)
			}
		}
	}
}

func TestPrefixRawKeepsBytesButNotLineEnds(t *testing.T) {
	var o bytes.Buffer
	p := newPrefix(prefixOptions{Out: &o, Err: &o, Raw: true})
	play(t, p, out(0, "a", "\x1b[31mred\x1b[0m\rb\n"), exited(0, "a", 0))
	if want := "a -> \x1b[31mred\x1b[0m\na -> b\n"; o.String() != want {
		t.Errorf("got %q, want %q", o.String(), want)
	}
}

// Lines come out the same whatever the pieces, and only bounded bytes are held.
func TestLinesAreIndependentOfPieces(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		var text strings.Builder
		for range r.IntN(60) {
			text.WriteString([]string{"a", "é", "世", "\n", "\r", "\r\n", "🙂", "\xff"}[r.IntN(8)])
		}
		max := 4 + r.IntN(12)
		whole := split(max, text.String())
		var pieces []string
		for rest := text.String(); rest != ""; {
			n := 1 + r.IntN(len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if diff := cmp.Diff(whole, split(max, pieces...)); diff != "" {
			t.Fatalf("%q in pieces %q, at most %d (-whole +pieces):\n%s", text.String(), pieces, max, diff)
		}
	}
}

func split(max int, pieces ...string) []string {
	l := Lines{Max: max}
	var got []string
	use := func(p Piece) { got = append(got, fmt.Sprintf("%v %q", p.Continues, p.Text)) }
	for _, p := range pieces {
		l.Feed([]byte(p), use)
	}
	l.End(use)
	return got
}

func TestEndlessLineIsBounded(t *testing.T) {
	data := bytes.Repeat([]byte("x"), 64<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	p := newPrefix(prefixOptions{Out: io.Discard, Err: io.Discard})
	for range 1600 { // 100 MB without a newline
		play(t, p, fleet.Event{Host: "a", Data: data})
	}
	play(t, p, exited(0, "a", 0))
	runtime.ReadMemStats(&after)
	if grown := after.HeapSys - before.HeapSys; after.HeapSys > before.HeapSys && grown > 20<<20 {
		t.Errorf("the heap grew by %d bytes", grown)
	}
}

// Each line has the time when its end came, its host's end included; an unknown one is no number.
// The record of a run keeps it.
func TestTimestamps(t *testing.T) {
	at := time.Date(2026, 11, 20, 10, 0, 0, 5e6, time.Local)
	stamped := func(i int, text string) fleet.Event {
		return fleet.Event{Index: 0, Host: "a", Data: []byte(text), Time: at.Add(time.Duration(i) * time.Second)}
	}
	var lines, again, kept, shown bytes.Buffer
	p, r := newPrefix(prefixOptions{Out: &lines, Err: &lines, Times: true}), NewRecord(&kept, How{})
	j := newJSON(&shown)
	j.times = true
	for _, sink := range []fleet.Sink{p, r, j} {
		_ = sink.Begin(fleet.Start{Hosts: []host.Host{{Name: "a"}}})
		_ = sink.Output(stamped(0, "one\ntw"))
		_ = sink.Output(stamped(1, "o\nend"))
		_ = sink.Done(fleet.Result{Host: host.Host{Name: "a"}, Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: 3}, Phase: fleet.PhaseExit, Attempts: 1, Start: at, Elapsed: 2 * time.Second}, fleet.Summary{})
	}
	stamp := func(i int) string {
		return at.Add(time.Duration(i) * time.Second).Format("2006-01-02T15:04:05.000Z07:00")
	}
	want := stamp(0) + " a -> one\n" + stamp(1) + " a -> two\n" + stamp(2) + " a -> end\n" + stamp(2) + " a =: exit 3\n"
	if lines.String() != want {
		t.Errorf("%s, want\n%s", &lines, want)
	}
	if n := strings.Count(shown.String(), `"time":"`+at.UTC().Format("2006-01-02T15:04:05")); n != 1 || strings.Count(shown.String(), `"time":`) != 3 {
		t.Errorf("as JSON:\n%s", &shown)
	}
	if _, err := Replay(&kept, newPrefix(prefixOptions{Out: &again, Err: &again, Times: true})); err != nil || again.String() != want {
		t.Errorf("of the record: %v\n%s, want\n%s", err, &again, want)
	}
	lines.Reset()
	_ = p.Output(fleet.Event{Host: "a", Data: []byte("x\n")})
	if lines.String() != "- a -> x\n" {
		t.Errorf("an unknown time: %q", &lines)
	}
}
