package watch

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/base/text"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

// begun is a view of a run on hosts, which are in some phase, without a terminal.
func begun(t *testing.T, width, height int, phases map[string]fleet.Phase, names ...string) *view {
	t.Helper()
	v := newView(Options{Stop: context.Background()})
	start := fleet.Start{Time: time.Now(), Command: "uptime"}
	for _, name := range names {
		start.Hosts = append(start.Hosts, host.Host{Name: name})
	}
	start.Phase = func(i int) fleet.Phase { return phases[names[i]] }
	if err := v.Begin(start); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = v.End(v.so) })
	v.width, v.height = width, height
	for i, name := range names {
		if _, ok := phases[name]; ok {
			_ = v.Started(i)
		}
	}
	return v
}

func (v *view) says(t *testing.T, index int, stream fleet.Stream, data string) {
	t.Helper()
	if err := v.Output(fleet.Event{Index: index, Stream: stream, Data: []byte(data)}); err != nil {
		t.Fatal(err)
	}
}

func (v *view) ends(t *testing.T, index int, o fleet.Outcome) {
	t.Helper()
	r := fleet.Result{Index: index, Host: v.start.Hosts[index], Outcome: o, Phase: fleet.PhaseExit, Attempts: 1, Elapsed: time.Second}
	v.so.Add(&r)
	if err := v.Done(r, v.so); err != nil {
		t.Fatal(err)
	}
}

var (
	well    = fleet.Outcome{Ran: fleet.RanYes}
	badly   = fleet.Outcome{Ran: fleet.RanYes, Exit: 3}
	refused = fleet.Outcome{Exit: -1, Class: fleet.Refused, Err: "connection refused", Hint: "start sshd"}
)

// screen is what is drawn after some keys.
func (v *view) screen(keys ...string) []string {
	m := model{v}
	m.Update(tick{})
	for _, key := range keys {
		msg := tea.KeyPressMsg{Text: key, Code: []rune(key)[0]}
		if code, named := map[string]rune{"enter": tea.KeyEnter, "space": tea.KeySpace, "esc": tea.KeyEscape, "down": tea.KeyDown, "up": tea.KeyUp,
			"home": tea.KeyHome, "end": tea.KeyEnd, "pgup": tea.KeyPgUp, "pgdown": tea.KeyPgDown, "left": tea.KeyLeft, "right": tea.KeyRight}[key]; named {
			msg = tea.KeyPressMsg{Code: code}
		}
		m.Update(msg)
	}
	lines := strings.Split(m.View().Content, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(strings.NewReplacer("\x1b[7m", "", "\x1b[0m", "").Replace(line), " ")
	}
	return lines
}

// TestOrder: hosts that failed are first, then those that have got furthest; the cursor stays on
// its host.
func TestOrder(t *testing.T) {
	v := begun(t, 80, 12, map[string]fleet.Phase{"run": fleet.PhaseExec, "login": fleet.PhaseAuth, "retry": fleet.PhaseQueued, "bad": fleet.PhaseExec, "good": fleet.PhaseExec, "down": fleet.PhaseConnect},
		"good", "wait", "retry", "login", "run", "down", "bad")
	v.start.Time = time.Now().Add(time.Hour)
	v.says(t, 6, fleet.Stderr, "no such file\n")
	v.says(t, 6, fleet.Stdout, "bye\n")
	v.says(t, 4, fleet.Stdout, "half\na line that is not comp")
	v.ends(t, 0, well)
	v.ends(t, 5, refused)
	v.ends(t, 6, badly)
	want := []string{
		" bad   exit 3             1.00s  no such file",
		" down  refused            1.00s  unreachable: connection refused",
		" run   running               0s  a line that is not comp",
		" login connecting            0s",
		" wait  waiting",
		" retry waiting               0s",
		" good  ok                 1.00s",
	}
	if diff := cmp.Diff(want, v.screen()[1:8]); diff != "" {
		t.Error(diff)
	}
	v.screen("down", "down") // on run
	v.ends(t, 3, badly)
	v.screen()
	if on := v.host(); on.name != "run" {
		t.Errorf("the cursor went to %s", on.name)
	}
	v.screen("up", "up", "up", "up")
	v.ends(t, 4, well)
	v.screen()
	if on := v.host(); on.name != "login" {
		t.Errorf("the cursor is on %s, not on top", on.name)
	}
}

// TestLayout: nothing is wider or higher than the terminal, down to one line.
func TestLayout(t *testing.T) {
	v := begun(t, 80, 24, map[string]fleet.Phase{}, strings.Repeat("long", 20), "漢字漢字漢字漢字漢字漢字漢字漢字", "c")
	v.says(t, 0, fleet.Stdout, strings.Repeat("漢", 100)+"\n")
	v.says(t, 1, fleet.Stdout, strings.Repeat("e\u0301", 200)+"\tx\n")
	v.ends(t, 0, refused)
	for _, size := range [][2]int{{80, 24}, {40, 10}, {200, 60}, {20, 3}, {1, 1}} {
		model{v}.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, keys := range [][]string{nil, {"enter"}, {"esc", "down", "enter"}, {"esc", "space", "up", "space", "d"}, {"esc", "?"}, {"esc"}} {
			lines := v.screen(keys...)
			for _, line := range lines {
				if text.Width(line) > size[0] {
					t.Errorf("%v, %v: %d columns: %s", size, keys, text.Width(line), line)
				}
			}
			if len(lines) != max(3, size[1]) {
				t.Errorf("%v, %v: %d lines", size, keys, len(lines))
			}
		}
	}
}

// TestHostile: no byte of a host's that a terminal could obey is drawn, wherever it stands.
func TestHostile(t *testing.T) {
	evil := "\x1b]0;owned\x07\x1b[2J\x9b31m\u202ex\x00\x08\x7f\u200b"
	v := begun(t, 80, 24, map[string]fleet.Phase{"a": fleet.PhaseExec, "b": fleet.PhaseExec}, "a", "b")
	v.start.Command = evil
	v.says(t, 0, fleet.Stdout, evil+"\n"+strings.Repeat("\x1b[", maxLine)+"\nlast \x1b[")
	v.says(t, 1, fleet.Stderr, evil+"y\r\n\x1b")
	v.ends(t, 0, fleet.Outcome{Exit: -1, Class: fleet.Lost, Err: evil, Hint: evil, Note: evil})
	v.ends(t, 1, fleet.Outcome{Exit: -1, Signal: evil, Ran: fleet.RanYes})
	for _, keys := range [][]string{nil, {"enter", "home"}, {"esc", "down", "enter"}, {"esc", "space", "up", "space", "d"}, {"home"}} {
		for _, line := range v.screen(keys...) {
			if !utf8.ValidString(line) || strings.ContainsAny(line, "\x1b\x00\x07\x08\x7f\u202e\u200b\u009b\r\t") {
				t.Errorf("%v: %q", keys, line)
			}
		}
	}
	v.Written([]byte("sshpace: " + evil + "\n"))
	if strings.Contains(v.notice, "\x1b") {
		t.Errorf("%q", v.notice)
	}
}

// TestOutput: a host's output is shown from the end, which stays on the screen while more comes; it
// can be gone through and searched.
func TestOutput(t *testing.T) {
	v := begun(t, 40, 6, map[string]fleet.Phase{"a": fleet.PhaseExec}, "a")
	for i := range 9 {
		v.says(t, 0, fleet.Stdout, fmt.Sprintf("line %d\n", i))
	}
	v.says(t, 0, fleet.Stderr, "oops\n")
	body := func(keys ...string) string { return strings.Join(v.screen(keys...)[1:5], " ") }
	check := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	check("end", body("enter"), "-> line 6 -> line 7 -> line 8 => oops")
	v.says(t, 0, fleet.Stdout, strings.Repeat("x", maxLine)+"yz\n")
	check("more", body("right"), "-> => -> "+strings.Repeat("x", 36)+"… +>")
	body("left")
	check("up", body("up", "pgup"), "-> line 3 -> line 4 -> line 5 -> line 6")
	v.says(t, 0, fleet.Stdout, "more\n")
	check("stays", body(), "-> line 3 -> line 4 -> line 5 -> line 6")
	check("home", body("home", "up"), "-> line 0 -> line 1 -> line 2 -> line 3")
	check("found", body("/", "n", "e", " ", "7", "enter"), "-> line 7 -> line 8 => oops -> "+strings.Repeat("x", 36)+"…")
	check("found again, from the beginning", body("/", "l", "i", "n", "e", "enter", "n", "n"), "-> line 0 -> line 1 -> line 2 -> line 3")
	check("not found", body("/", "q", "q", "enter"), "-> line 0 -> line 1 -> line 2 -> line 3")
	check("not found", v.notice, "not found: qq")
	v.says(t, 0, fleet.Stderr, "Password: ")
	check("a line that is not complete", v.screen()[0], "a: running 0s, 4.1 KiB: Password:")
	v.ends(t, 0, refused)
	check("ended", body("end"), "-> more => Password: =: unreachable: connection refused =: hint: start sshd")
}

// TestBeside: two hosts are compared, standard output apart from standard error.
func TestBeside(t *testing.T) {
	v := begun(t, 43, 20, map[string]fleet.Phase{}, "a", "b", "c")
	for i, says := range [][2]string{{"1\nold\n3\n", "err\n"}, {"1\nnew\n3\nmore\n", "err\n"}, {"1\nold\n3\n", "err\n"}} {
		v.says(t, i, fleet.Stderr, says[1])
		v.says(t, i, fleet.Stdout, says[0])
	}
	got := v.screen("space", "d")
	want := []string{
		"a and b",
		"line 1               @ line 1",
		"1                      1",
		"old                  | new",
		"3                      3",
		"                     > more",
		"err                    err",
	}
	if diff := cmp.Diff(want, got[:7]); diff != "" {
		t.Error(diff)
	}
	v.screen("esc", "end", "d")
	if len(v.pages) != 1 || v.notice != "a and c have sent the same" {
		t.Errorf("%d pages, %q", len(v.pages), v.notice)
	}
	v.screen("space", "up", "space", "d")
	if len(v.pages) != 1 || !strings.HasPrefix(v.notice, "mark two hosts") {
		t.Errorf("%d pages, %q", len(v.pages), v.notice)
	}
}

// TestMuch: a host that sends much takes no memory for it, and its output is shown at once, from
// wherever.
func TestMuch(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	v := begun(t, 80, 24, map[string]fleet.Phase{"a": fleet.PhaseExec}, "a")
	piece := strings.Repeat(strings.Repeat("z", 79)+"\n", 400)
	for range 64 << 20 / len(piece) {
		v.says(t, 0, fleet.Stdout, piece)
	}
	v.says(t, 0, fleet.Stdout, "here\n")
	runtime.GC()
	var used runtime.MemStats
	runtime.ReadMemStats(&used)
	if used.HeapAlloc > inMemory+16<<20 {
		t.Errorf("%d bytes in memory", used.HeapAlloc)
	}
	v.screen("enter", "home", "/", "h", "e", "r", "e", "enter")
	for range 3 {
		if v.notice == "not found up to here; n goes on" {
			v.screen("n")
		}
	}
	if line, _, _ := v.page().line(v.page().at, 0, 0); line != "-> here" {
		t.Errorf("found %q", line)
	}
}

// TestLeaving: a run that goes on is left when that is asked for twice, one that has ended at once.
func TestLeaving(t *testing.T) {
	v := begun(t, 80, 24, nil, "a")
	if v.press("q", "") != nil || v.press("?", "?") != nil || v.press("esc", "") != nil || v.press("q", "") != nil {
		t.Error("left at once")
	}
	if v.press("q", "") == nil {
		t.Error("not left")
	}
	v.over = true
	if v.press("q", "") == nil {
		t.Error("not left after the end")
	}
}

// TestDiskFull: output for which there is no room is lost, which is said.
func TestDiskFull(t *testing.T) {
	v := begun(t, 80, 24, map[string]fleet.Phase{"a": fleet.PhaseExec}, "a")
	v.store.Dir, v.store.Limit = "/dev/full", 0
	data := strings.Repeat("x\n", 64<<10)
	lost := v.Output(fleet.Event{Data: []byte(data)})
	if lost == nil {
		lost = v.Output(fleet.Event{Data: []byte(data)})
	}
	if _, is := lost.(*fleet.LostOutput); !is {
		t.Errorf("%v", lost)
	}
	if title := v.screen("enter")[0]; !strings.Contains(title, "more were not kept: keep output: ") {
		t.Error(title)
	}
}

// TestNobody: without a terminal there is no view.
func TestNobody(t *testing.T) {
	_, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if _, got := Over(fleet.Nothing{}, Options{Screen: terminal.NewScreen(os.Stderr, os.Getenv)}); (got == nil) != (err == nil) {
		t.Error(got)
	}
}
