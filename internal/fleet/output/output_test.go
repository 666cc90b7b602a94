package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

func out(i int, name, data string) fleet.Event {
	return fleet.Event{Index: i, Host: name, Stream: fleet.Stdout, Data: []byte(data)}
}

func stderr(i int, name, data string) fleet.Event {
	e := out(i, name, data)
	e.Stream = fleet.Stderr
	return e
}

// exited is the result of a command that ran.
func exited(i int, name string, code int) fleet.Result {
	return fleet.Result{
		Index: i, Host: host.Host{Name: name}, Phase: fleet.PhaseExit, Attempts: 1, Elapsed: time.Duration(i+1) * time.Second,
		Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: code},
	}
}

func refused(i int, name string) fleet.Result {
	return fleet.Result{
		Index: i, Host: host.Host{Name: name}, Phase: fleet.PhaseConnect, Attempts: 1,
		Outcome: fleet.Outcome{Ran: fleet.RanNo, Class: fleet.Refused, Exit: -1, Err: "connection refused", Hint: "is sshd running there?"},
	}
}

// play sends everything to the sink and fails on errors.
func play(t *testing.T, sink fleet.Sink, steps ...any) {
	t.Helper()
	for _, step := range steps {
		var err error
		switch s := step.(type) {
		case fleet.Event:
			err = sink.Output(s)
		case fleet.Result:
			err = sink.Done(s, fleet.Summary{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestExplain(t *testing.T) {
	killed := exited(0, "a", -1)
	killed.Signal = "KILL"
	lost := fleet.Result{Phase: fleet.PhaseExec, Attempts: 1, Outcome: fleet.Outcome{Ran: fleet.RanUnknown, Class: fleet.Lost, Exit: -1}}
	hostile := refused(0, "a")
	hostile.Err = "banner \x1b[2J\nx"
	tests := []struct {
		r    fleet.Result
		want string
	}{
		{exited(0, "a", 0), ""},
		{exited(0, "a", 3), "exit 3"},
		{killed, "killed by signal KILL"},
		{refused(0, "a"), "unreachable: connection refused"},
		{lost, "lost; ran: unknown"},
		{fleet.Result{Outcome: fleet.Outcome{Class: fleet.Cancelled}}, "not started"},
		{hostile, `unreachable: banner \nx`},
	}
	for _, tt := range tests {
		if got := explain(&tt.r); got != tt.want {
			t.Errorf("Explain(%+v) = %q, want %q", tt.r, got, tt.want)
		}
	}
}

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

// Whatever a host sends, in whatever pieces, every line that comes out begins
// with its own name, and no control character survives.
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

func TestGatherFolds(t *testing.T) {
	var o, e bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: &e, Dir: t.TempDir()})
	for i := range 3 {
		name := fmt.Sprintf("web%d.example", i+1)
		play(t, g, out(i, name, fmt.Sprintf("I am web%d of %s\nsame", i+1, name)), exited(i, name, 0))
	}
	play(t, g,
		out(3, "db1", "different\x1b[31m\n"), stderr(3, "db1", "warning\n"), exited(3, "db1", 2),
		stderr(4, "db2", "warning\n"), exited(4, "db2", 2),
		out(6, "w1", "kernel 6.1\n"), exited(6, "w1", 0), out(5, "w2", "kernel "), out(5, "w2", "6.1"), exited(5, "w2", 0),
		refused(7, "gone"))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	wantOut := `---------------
web[1-3].example (3)
---------------
| I am <host> of <host>
| same
---------------
w[1-2] (2)
---------------
| kernel 6.1
---------------
db1 (1)
---------------
| different
`
	wantErr := `---------------
db[1-2] (2), standard error
---------------
| warning
db[1-2] (2) =: exit 2
gone (1) =: unreachable: connection refused
hint: is sshd running there?
`
	if diff := cmp.Diff(wantOut, o.String()); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(wantErr, e.String()); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

// What is wrong with hosts in the same way is said once, whatever they and their addresses
// are called; where something else differs, too, it is said of each.
func TestEndsFold(t *testing.T) {
	lost := func(i int, name, text, hint string) fleet.Result {
		r := refused(i, name)
		r.Err, r.Hint = text, hint
		return r
	}
	results := []any{
		lost(0, "web1", "connect to host 192.0.2.1 port 22: Connection refused", "see 192.0.2.1"),
		lost(1, "web2", "connect to host 192.0.2.2 port 22: Connection refused", "see 192.0.2.2"),
		lost(2, "web3", "connect to host far.example.com port 22: Connection refused", ""),
		lost(3, "web4", "connect to host 192.0.2.4 port 2222: Connection refused", ""),
		lost(4, "db1", "host key of [::1]:22 (2001:db8::1) for db1.example is unknown", ""),
		lost(5, "db2", "host key of [::2]:22 (2001:db8::2) for db2.example is unknown", ""),
		lost(6, "x", "Could not resolve hostname nosuch: no", ""), lost(7, "y", "Could not resolve hostname none: no", ""),
	}
	var e bytes.Buffer
	g := newGather(gatherOptions{Out: io.Discard, Err: &e, Dir: t.TempDir()})
	play(t, g, results...)
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := `web[1-3] (3) =: unreachable: connect to host <host> port 22: Connection refused
db[1-2] (2) =: unreachable: host key of [<host>]:22 (<host>) for <host>.example is unknown
x,y (2) =: unreachable: Could not resolve hostname <host>: no
web4 (1) =: unreachable: connect to host 192.0.2.4 port 2222: Connection refused
hint: see <host>
`
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var lines bytes.Buffer
	p := newPrefix(prefixOptions{Out: io.Discard, Err: &lines})
	play(t, p, results...)
	if n := strings.Count(lines.String(), "hint: "); n != 1 {
		t.Errorf("%d hints as hosts end:\n%s", n, &lines)
	}
}

// A copy to many hosts shows what was copied as they end, and once what went wrong.
func TestCopiesFold(t *testing.T) {
	var o, e bytes.Buffer
	v := View{Files: true, Color: "never", Quiet: true}
	var hosts []host.Host
	for _, name := range []string{"w1", "w2", "w3"} {
		hosts = append(hosts, host.Host{Name: name})
	}
	sink, err := v.Sink(Streams{Out: &o, Err: &e, Getenv: func(string) string { return "" }}, hosts)
	if err != nil {
		t.Fatal(err)
	}
	failed := func(i int) fleet.Result {
		r := exited(i, hosts[i].Name, 1)
		r.Err, r.Hint = "/srv/: there is no such directory", "make it"
		return r
	}
	play(t, sink, out(0, "w1", "1 file copied\n"), exited(0, "w1", 0), stderr(1, "w2", "x: left out\n"), failed(1), stderr(2, "w3", "x: left out\n"), failed(2))
	if o.String() != "w1 -> 1 file copied\n" || e.Len() > 0 {
		t.Errorf("before the end: %q, %q", &o, &e)
	}
	if err := sink.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := rule + "\nw[2-3] (2), standard error\n" + rule + "\n| x: left out\nw[2-3] (2) =: /srv/: there is no such directory\nhint: make it\n"
	if diff := cmp.Diff(want, e.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A line that is longer than what is held at once stays one line.
func TestGatherLongLine(t *testing.T) {
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard})
	long := strings.Repeat("0123456789", 3*defaultMaxLine/10)
	play(t, g, out(0, "web1", long+"\nnext\n\n"), exited(0, "web1", 0))
	if err := g.End(fleet.Summary{}); err != nil || !strings.HasSuffix(o.String(), rule+"\n| "+long+"\n| next\n| \n") {
		t.Errorf("%v, %d bytes in %d lines", err, o.Len(), strings.Count(o.String(), "\n"))
	}
}

// A single host's own name stays as it was sent.
func TestGatherShowsTheNameWhenNothingWasFolded(t *testing.T) {
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard})
	play(t, g, out(0, "web1", "web1 here\n"), exited(0, "web1", 0))
	if err := g.End(fleet.Summary{}); err != nil || !strings.Contains(o.String(), "\n| web1 here\n") {
		t.Errorf("%v, %q", err, o.String())
	}
}

func TestNamesReplaceWholeWordsOnly(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"web1", "web1 web10 xweb1 my-web1 web1.lan web1", "* web10 xweb1 my-web1 *.lan *"},
		{"web1.lan", "web1.lan web1 web1.lan.", "* * *."},
		{"10.0.0.1", "10.0.0.1 10.0.0.12 10", "* 10.0.0.12 10"},
		{"a.b", "a a.b", "a *"},
	}
	for _, tt := range tests {
		if got := string(namesOf(tt.name).replace(nil, []byte(tt.text), []byte("*"))); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// More output than memory may hold goes to a file and comes back unchanged, and
// nothing of it stays on disk.
func TestGatherSpills(t *testing.T) {
	dir := t.TempDir()
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard, Dir: dir, Memory: 1 << 20})
	block := strings.Repeat("0123456789abcdef\n", 1<<12)
	for range 60 { // 4.2 MB each
		play(t, g, out(0, "a1", block), out(1, "a2", block), out(2, "b", "b"+block))
	}
	if g.store.inside > 4<<20 {
		t.Errorf("%d bytes in memory", g.store.inside)
	}
	play(t, g, exited(0, "a1", 0), exited(1, "a2", 0), exited(2, "b", 0))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	want := "---------------\na[1-2] (2)\n---------------\n" + strings.Repeat("| 0123456789abcdef\n", 60<<12) + "---------------\n"
	if !strings.HasPrefix(o.String(), want) {
		t.Errorf("the first group of %d bytes is not as sent", o.Len())
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What finds no room is said, and costs neither the run nor other hosts; outputs
// that are equal as far as they were kept are not taken for equal.
func TestGatherWithoutRoom(t *testing.T) {
	var o bytes.Buffer
	g := newGather(gatherOptions{Out: &o, Err: io.Discard, Dir: filepath.Join(t.TempDir(), "missing"), Memory: 1})
	block := strings.Repeat("x", maxTail-1) + "\n"
	play(t, g, out(0, "a", block), out(1, "b", block), out(2, "c", "short\n"))
	for i, rest := range []string{"A", "BB"} {
		if err := g.Output(out(i, "ab"[i:i+1], rest)); !isLoss(err) {
			t.Errorf("error %v for what is not kept", err)
		}
	}
	play(t, g, exited(0, "a", 0), exited(1, "b", 0), exited(2, "c", 0))
	if err := g.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\na (1)\n", "\nb (1)\n", "\n[1 more bytes were not kept: keep output: ", "\n[2 more bytes", "\n| short\n"} {
		if !strings.Contains(o.String(), want) {
			t.Errorf("no %q in\n%s", want, strings.ReplaceAll(o.String(), "x", ""))
		}
	}
}

func TestTeeTellsEverySinkTheEnd(t *testing.T) {
	closing := newClosing(io.Discard, 0)
	tee := Tee{&failing{}, closing}
	err := tee.Done(refused(0, "a"), fleet.Summary{})
	if !errors.Is(err, errBroken) || len(closing.names[fleet.Unreachable]) != 1 {
		t.Errorf("error %v, names %q", err, closing.names)
	}
}

var errBroken = errors.New("broken")

type failing struct{ fleet.Nothing }

func (*failing) Output(fleet.Event) error               { return errBroken }
func (*failing) Done(fleet.Result, fleet.Summary) error { return errBroken }

// What one sink lost is known to those behind it, and to no host but its own.
func TestTeeTellsOfLosses(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	var errs, last bytes.Buffer
	tee := Tee{newPrefix(prefixOptions{Out: full, Err: &errs}), newClosing(&last, 0)}
	play(t, tee, out(0, "a", "held"), exited(1, "b", 0))
	if err := tee.Output(out(0, "a", "x\n")); !isLoss(err) {
		t.Errorf("error %v of output", err)
	}
	play(t, tee, out(2, "c", "held"))
	if err := tee.Done(exited(2, "c", 0), fleet.Summary{}); !isLoss(err) {
		t.Errorf("error %v of the end", err)
	}
	if want := "c =: output incomplete: write /dev/full: no space left on device\n"; errs.String() != want {
		t.Errorf("%q, want %q", errs.String(), want)
	}
	if err := tee.End(fleet.Summary{OK: 2}); err != nil {
		t.Error(err)
	}
	if got := last.String(); !strings.Contains(got, "\noutput incomplete: write /dev/full: no space left on device: c\n") {
		t.Errorf("summary %q", got)
	}
}

func TestSinksReportClosedOutput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	defer w.Close()
	if err := newPrefix(prefixOptions{Out: w, Err: io.Discard}).Output(out(0, "a", "x\n")); err == nil {
		t.Error("Prefix: no error for a closed pipe")
	}
	if err := newJSON(w).Begin(fleet.Start{}); err == nil {
		t.Error("JSON: no error for a closed pipe")
	}
}

func TestClosing(t *testing.T) {
	var o bytes.Buffer
	closing := newClosing(&o, 0)
	play(t, closing, exited(0, "web1", 0), exited(1, "web2", 1), exited(2, "web3", 1), refused(3, "db1"), exited(4, "x", 0),
		fleet.Result{Index: 5, Host: host.Host{Name: "late"}, Outcome: fleet.Outcome{Class: fleet.Cancelled}})
	if err := closing.End(fleet.Summary{OK: 2, Failed: 2, Unreachable: 1, NotStarted: 1, Elapsed: 5123 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	want := `6 hosts: 2 ok, 2 failed, 1 unreachable, 1 not started in 5.12s; slowest: x 5s, web3 3s, web2 2s
failed: web[2-3]
unreachable: db1
not started: late
`
	if diff := cmp.Diff(want, o.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRound(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1234567 * time.Microsecond: "1.23s", 999 * time.Millisecond: "999ms", 61234 * time.Millisecond: "1m1.2s", 42: "42ns",
		1234567: "1.23ms", 25 * time.Hour: "25h0m0s",
	} {
		if got := round(d).String(); got != want {
			t.Errorf("round(%d) = %s, want %s", d, got, want)
		}
	}
}

func TestProgressStaysOutOfTheWay(t *testing.T) {
	var screen bytes.Buffer
	sink := newPrefix(prefixOptions{Out: &screen, Err: &screen})
	view := terminal.NewScreen(&screen, os.Getenv)
	view.Width = 80
	p := newProgress(view, func() int { return 80 }, false, sink)
	if err := p.Begin(fleet.Start{Time: time.Now(), Hosts: make([]host.Host, 3)}); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.draw()
	p.mu.Unlock()
	play(t, p, out(0, "a", "line\n"), exited(0, "a", 1))
	if err := p.Done(refused(1, "b"), fleet.Summary{Failed: 1, Unreachable: 1}); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	p.draw()
	p.mu.Unlock()
	if err := p.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	got := screen.String()
	if !strings.Contains(got, "0 of 3 hosts, 0s\n\r\x1b[1A\x1b[Ja -> line\n") {
		t.Errorf("the line was not removed before output: %q", got)
	}
	if !strings.HasSuffix(got, "2 of 3 hosts, 0s, 1 failed, 1 unreachable\n\r\x1b[1A\x1b[J") {
		t.Errorf("the last line is not removed: %q", got)
	}
}

func TestFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	f, err := OpenFiles(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 { // more hosts than may be open
		for i := range 5 {
			play(t, f, out(i, fmt.Sprintf("web%d", i), fmt.Sprintf("%d\n\x00", round)))
		}
		if len(f.open) > 2 {
			t.Errorf("%d files open", len(f.open))
		}
	}
	play(t, f, stderr(0, "web0", "bad\n"), exited(0, "web0", 1), exited(9, "silent", 0))
	if err := f.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 6 {
		t.Fatalf("%v, %v", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s has mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	got, err := os.ReadFile(filepath.Join(dir, "web4.out"))
	if err != nil || string(got) != "0\n\x001\n\x002\n\x00" {
		t.Errorf("web4.out = %q, %v", got, err)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: %v, %v", info.Mode(), err)
	}
}

// Neither names nor links lead out of the folder.
func TestFilesStayInTheirFolder(t *testing.T) {
	top := t.TempDir()
	victim := filepath.Join(top, "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(top, "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(dir, "web1.out")); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFiles(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	play(t, f, out(0, "web1", "x"), out(1, "../victim", "x"), out(2, "..", "x"), out(3, "a/b", "x"), out(4, "/etc/passwd", "x"))
	if err := f.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(victim); err != nil || string(got) != "precious" {
		t.Errorf("victim = %q, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 5 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestFilesRefuseSharedFolders(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if f, err := OpenFiles(dir, 0); err == nil {
		f.End(fleet.Summary{})
		t.Error("a directory in which everybody may write was accepted")
	}
}

// A full disk costs the output that finds no room, nothing else, and is told.
func TestFilesReportAFullDisk(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFiles(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.open["a.out"], f.order = full, []string{"a.out"}
	for range 2 { // the second finds no open file
		if err := f.Output(out(0, "a", "x")); !isLoss(err) || !strings.Contains(err.Error(), "no space left") {
			t.Errorf("error = %v", err)
		}
	}
	play(t, f, out(1, "b", "x"), exited(0, "a", 0), exited(1, "b", 0))
	if err := f.End(fleet.Summary{}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "b.out")); err != nil || string(got) != "x" {
		t.Errorf("b.out = %q, %v", got, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a.out")); err == nil {
		t.Error("a.out was begun again behind the gap")
	}
}

func TestFileName(t *testing.T) {
	long := strings.Repeat("a", 300)
	tests := []struct{ text, want string }{
		{"root@web1.example-2_x", "root@web1.example-2_x"},
		{"web1:22", "web1%3A22"},
		{"..", "%2E."},
		{".x", "%2Ex"},
		{"../a", "%2E.%2Fa"},
		{"50%", "50%25"},
		{"[::1]:22", "%5B%3A%3A1%5D%3A22"},
		{"k\u00e4", "k%C3%A4"},
	}
	for _, tt := range tests {
		if got := FileName(tt.text); got != tt.want {
			t.Errorf("FileName(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
	if a, b := FileName(long), FileName(long+"b"); len(a) > maxFileName || a == b {
		t.Errorf("long names: %d bytes, equal: %v", len(a), a == b)
	}
}
