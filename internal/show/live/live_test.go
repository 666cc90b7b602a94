package live

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
	"sshpace/internal/sys/terminal"
)

// cleared separates the drawings on a terminal.
const cleared = "\x1b[J"

// replay shows a recorded run to a view, as if every record took a second.
func replay(t *testing.T, f *record.File, width int, quiet bool) string {
	t.Helper()
	out, clock := &bytes.Buffer{}, time.Unix(0, 0)
	screen := terminal.NewScreen(out, func(string) string { return "" })
	screen.Width = width
	seen := &record.File{Trials: map[int]record.Trial{}}
	done := 0
	p := Params{
		Screen: screen, Quiet: quiet, File: seen, Load: func() float64 { return 1.25 }, Now: func() time.Time { return clock },
		Progress: func() plan.Progress {
			return plan.Progress{Done: min(done, 115), Total: 115, Failed: 1, Remaining: 38 * time.Second, Ranked: done > 100}
		},
	}
	v := New(p)
	into := seen.Sink()
	for r := range f.Records() {
		clock = clock.Add(time.Second)
		if _, is := r.(*record.Sample); is {
			done++
		}
		for _, sink := range []record.Sink{into, v.Sink} {
			if err := sink(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out.String()
}

func run(t *testing.T) *record.File {
	t.Helper()
	f := benchtest.Simulate(t, &benchtest.Machine{Seed: 1, Noise: 0.015, WallNoise: 0.05, Connection: 0.01}, time.Minute)
	f.Campaign.Engine, f.Environment.Client = record.EngineOpenSSH, "OpenSSH_9.2p1"
	f.Environment.StrictKex = new(true)
	return f
}

// On a terminal there is what a user wants to know, in few lines that fit.
func TestTerminal(t *testing.T) {
	for _, width := range []int{200, 80, 60, 40} {
		drawings := strings.Split(replay(t, run(t), width, false), cleared)
		all := strings.TrimSuffix(drawings[len(drawings)-1], "\n")
		lines := strings.Split(all, "\n")
		wants := []string{"38s left", "115 measured", "1 failed", "load 1.2", "aes128-gcm", "so far: ", "now: ", "Ctrl-C: report the results so far"}
		if width >= 60 {
			wants = append(wants, "[####")
		}
		for _, want := range wants {
			if !strings.Contains(all, want) {
				t.Errorf("%d columns lack %q:\n%s", width, want, all)
			}
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n >= width || line == "" {
				t.Errorf("%d columns: %d: %q", width, n, line)
			}
		}
		if len(lines) > 9 {
			t.Errorf("%d columns: %d lines:\n%s", width, len(lines), all)
		}
	}
}

// A pipe gets a line every ten seconds, and what fails once; nothing is drawn.
func TestPipe(t *testing.T) {
	f := run(t)
	for i := range f.Samples[20:23] {
		f.Samples[20+i].Outcome, f.Samples[20+i].Detail = record.Broken, "gone\x1b[2J"
	}
	out := replay(t, f, 0, false)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	records := 0
	for range f.Records() {
		records++
	}
	failures := 0
	for _, line := range lines {
		if strings.Contains(line, "broken: gone") {
			failures++
		}
	}
	if n := len(lines) - failures; n != records/10 || failures == 0 || failures > 3 || strings.Contains(out, "\x1b") {
		t.Errorf("%d lines in %d seconds, %d failures:\n%s", n, records, failures, out)
	}
	if last := lines[len(lines)-1]; !strings.Contains(last, "aes128-gcm is faster") || !strings.Contains(last, "38s left, 115 of 115 measured, 1 failed, load 1.2") {
		t.Errorf("the last line is %q", last)
	}
}

func TestNothingWhenQuiet(t *testing.T) {
	for _, width := range []int{0, 80} {
		if out := replay(t, run(t), width, true); out != "" {
			t.Errorf("%d columns: %q", width, out)
		}
	}
}

// A view that nobody sees any more ends a run; one that fails otherwise does not.
func TestUnwatched(t *testing.T) {
	for cause, want := range map[error]error{syscall.EPIPE: ErrUnwatched, syscall.EIO: nil} {
		v := New(Params{Screen: terminal.NewScreen(broken{cause}, func(string) string { return "" }), Now: time.Now})
		if err := v.Sink(&record.Sample{Outcome: record.Broken}); err != want {
			t.Errorf("%v: %v, want %v", cause, err, want)
		}
	}
}

type broken struct{ err error }

func (w broken) Write([]byte) (int, error) { return 0, w.err }

func TestStatusFits(t *testing.T) {
	p := plan.Progress{Done: 12, Total: 127, Failed: 1, Remaining: 59 * time.Second}
	for width := 20; width < 120; width++ {
		for _, line := range status(p, width) {
			if len(line) > width {
				t.Errorf("%d columns: %q", width, line)
			}
		}
	}
	if got := fmt.Sprint(status(p, 60)); got != "[[#.................]  59s left  12 of 127 measured  1 failed]" {
		t.Errorf("%s", got)
	}
}
