package output

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

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
		if got := Explain(&tt.r); got != tt.want {
			t.Errorf("Explain(%+v) = %q, want %q", tt.r, got, tt.want)
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
	view := terminal.NewScreen(&screen, os.Getenv)
	view.Width = 80
	p := newProgress(view, func() int { return 80 }, false, newPrefix(prefixOptions{Out: view, Err: view}))
	if err := p.Begin(fleet.Start{Time: time.Now(), Hosts: make([]host.Host, 3)}); err != nil {
		t.Fatal(err)
	}
	p.naming = func() int { return 2 }
	p.mu.Lock()
	p.draw()
	p.naming = func() int { return 0 }
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
	if !strings.Contains(got, "0 of 3 hosts, 0s, looking up 2 names\n\r\x1b[1A\x1b[Ja -> line\n") {
		t.Errorf("the line was not removed before output: %q", got)
	}
	if !strings.HasSuffix(got, "2 of 3 hosts, 0s, 1 failed, 1 unreachable\n\r\x1b[1A\x1b[J") {
		t.Errorf("the last line is not removed: %q", got)
	}
}
