package mux_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/session/sessiontest"
	"sshpace/internal/ssh/sshtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// master is a real ssh -M.
type master struct {
	path string
	cmd  *exec.Cmd
}

func startMaster(t *testing.T, s *sshtest.Sshd, options ...string) *master {
	t.Helper()
	dir, err := os.MkdirTemp("", "mux") // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	m := &master{path: filepath.Join(dir, "m")}
	m.cmd = exec.Command("ssh", append(options, "-F", "none", "-M", "-S", m.path, "-N", "-i", s.Key, "-o", "IdentityAgent=none", "-p", fmt.Sprint(s.Port),
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR", "-l", s.User, "127.0.0.1")...)
	if err := m.cmd.Start(); err != nil {
		t.Error(err)
		return m
	}
	t.Cleanup(func() {
		m.cmd.Process.Signal(syscall.SIGCONT)
		m.cmd.Process.Kill()
		m.cmd.Wait()
	})
	if !waittest.Comes(sshtest.Listens("unix", m.path)) { // once it is let in
		t.Error("the master did not begin")
	}
	return m
}

// shared is an executor that knows one master.
type shared struct {
	path    string
	env     []string
	timeout time.Duration
	err     error // of the last host
}

func (*shared) FDs() int { return 1 }

func (x *shared) Execute(ctx context.Context, _ host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	cmd.Env = x.env
	s := mux.Session{Path: x.path, Command: cmd, Timeout: x.timeout}
	o, err := s.Run(ctx, a)
	if x.err = err; err != nil {
		return fleet.Outcome{Class: fleet.Local, Exit: -1, Err: err.Error()}
	}
	return o
}

func run(t *testing.T, x fleet.Executor, p fanout.Params, cmd fleet.Command, sink *sshtest.Told) fleet.Result {
	t.Helper()
	if _, err := fanout.Run(t.Context(), p, []host.Host{{Name: "h"}}, cmd, x, sink); err != nil {
		t.Fatal(err)
	}
	return sink.Results()[0]
}

// TestUnusable: what is no live master of ours is said, in time, and nothing has run.
func TestUnusable(t *testing.T) {
	s := sshtest.StartSshdForOther(t, "MaxSessions 1")
	hung := startMaster(t, s)
	if err := hung.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	full := startMaster(t, s)
	occupied := exec.Command("ssh", "-F", "none", "-S", full.path, "x", "echo there; cat") // ends with its input
	in, inErr := occupied.StdinPipe()
	out, err := occupied.StdoutPipe()
	if err := errors.Join(inErr, err); err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if err := occupied.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { occupied.Process.Kill(); occupied.Wait() }()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	dead := filepath.Join(dir, "dead")
	l, err := net.Listen("unix", dead)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	strange, err := net.Listen("unix", other)
	if err != nil {
		t.Fatal(err)
	}
	defer strange.Close()
	go func() {
		for {
			c, err := strange.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("HTTP/1.1 400 Bad Request\r\n"))
			c.Close()
		}
	}()
	for path, want := range map[string]string{
		hung.path: "does not answer", full.path: "MaxSessions", dead: "is dead: connection refused", file: "is dead: connection refused",
		other: "is unusable", filepath.Join(dir, "none"): "does not exist",
	} {
		x := &shared{path: path}
		start := time.Now()
		r := run(t, x, fanout.Params{}, fleet.Command{Line: "echo never"}, &sshtest.Told{})
		if x.err == nil || !strings.Contains(x.err.Error(), want) || r.Ran != fleet.RanNo || time.Since(start) > time.Minute {
			t.Errorf("%s: %v after %v, want %q", path, x.err, time.Since(start), want)
		}
		if path == full.path {
			conn, err := net.Dial("unix", path)
			if ended := strings.Contains(x.err.Error(), "has ended over that"); ended != (err != nil) {
				t.Errorf("the master: %v, and it is said: %v", err, x.err)
			}
			if err == nil {
				conn.Close()
			}
		}
		if own := (*mux.Error)(nil); errors.As(x.err, &own) == errors.Is(x.err, os.ErrNotExist) {
			t.Errorf("%s: %v is not of one kind", path, x.err)
		}
	}
}

// TestEnded: the command ends there, the master and its other sessions go on.
func TestEnded(t *testing.T) {
	s := sshtest.StartSshdForOther(t)
	m := startMaster(t, s)
	drain, interrupt := context.WithCancel(t.Context())
	var says bytes.Buffer
	sink := &sshtest.Told{OnOutput: func(e fleet.Event) error { interrupt(); says.Write(e.Data); return nil }}
	start := time.Now()
	r := run(t, &shared{path: m.path}, fanout.Params{Drain: drain}, fleet.Command{Line: "trap 'echo ended; exit 9' TERM; echo here; while :; do sleep 0.1; done"}, sink)
	if r.Class != fleet.Cancelled || r.Exit != 9 || !strings.Contains(says.String(), "ended") || time.Since(start) > time.Minute {
		t.Errorf("%+v %q", r, says.String())
	}
	if r := run(t, &shared{path: m.path}, fanout.Params{}, fleet.Command{Line: "exit 4"}, &sshtest.Told{}); r.Exit != 4 {
		t.Errorf("the master does not go on: %+v", r)
	}
	sink = &sshtest.Told{OnOutput: func(fleet.Event) error { m.cmd.Process.Kill(); return nil }}
	lost := run(t, &shared{path: m.path}, fanout.Params{}, fleet.Command{Line: "echo here; sleep 5"}, sink)
	if lost.Class != fleet.Lost || lost.Ran != fleet.RanUnknown {
		t.Errorf("%+v", lost)
	}
}

// TestNoFurtherSession: a master whose server gives no further session lives on when a Dialogue
// asks for one, and so do all that use it.
func TestNoFurtherSession(t *testing.T) {
	s := sshtest.StartSshdForOther(t, "Subsystem echo /bin/cat", "MaxSessions 1")
	m := startMaster(t, s)
	var refused error
	talk := func(ctx context.Context, h host.Host, c fleet.Channel) error {
		for range 3 {
			if _, refused = c.Exec(ctx, "true", strings.NewReader("")); !errors.Is(refused, fleet.ErrNoExec) {
				return fmt.Errorf("got %w", refused)
			}
		}
		if _, err := c.Write([]byte("hello")); err != nil {
			return err
		}
		_, err := io.ReadFull(c, make([]byte, 5))
		return err
	}
	x := &shared{path: m.path}
	if r := run(t, x, fanout.Params{}, fleet.Command{Line: "echo", Dialogue: talk}, &sshtest.Told{}); x.err != nil || r.Exit != 0 {
		t.Errorf("%+v, %v", r, x.err)
	}
	if refused == nil || !strings.Contains(refused.Error(), "gives no session") {
		t.Errorf("got %v", refused)
	}
	if out, err := exec.Command("ssh", "-F", "none", "-S", m.path, "-O", "check", "x").CombinedOutput(); err != nil {
		t.Errorf("the master has ended: %s", out)
	}
}

// TestDialogue: what ends a Dialogue over a master: no such subsystem, after which nothing has run,
// and the end of the master.
func TestDialogue(t *testing.T) {
	m := startMaster(t, sshtest.StartSshdForOther(t, "Subsystem echo /bin/cat"))
	x := &shared{path: m.path}
	run(t, x, fanout.Params{}, fleet.Command{Line: "none", Dialogue: func(context.Context, host.Host, fleet.Channel) error { return nil }}, &sshtest.Told{})
	if own := (*mux.Error)(nil); !errors.As(x.err, &own) || !strings.Contains(x.err.Error(), "no such subsystem") {
		t.Errorf("%v, want that there is no such subsystem", x.err)
	}
	dies := func(_ context.Context, _ host.Host, c fleet.Channel) error {
		m.cmd.Process.Kill()
		_, err := c.Read(make([]byte, 1))
		return err
	}
	if r := run(t, x, fanout.Params{}, fleet.Command{Line: "echo", Dialogue: dies}, &sshtest.Told{}); r.Class != fleet.Lost {
		t.Errorf("%+v", r)
	}
}

// TestGiven: whatever becomes of the commands on a connection, it stays, and so do its other
// channels.
func TestGiven(t *testing.T) {
	refusing := (&sshtest.Server{RefuseExec: true, Exec: func(x *sshtest.Session) { io.Copy(x, x) }}).Start(t)
	other := sshtest.StartSshdForOther(t, "Subsystem echo /bin/cat")
	for refused, s := range map[bool]*sshtest.Sshd{false: other, true: {User: other.User, Key: other.Key, Port: refusing.Port()}} {
		m, err := mux.Open(t.Context(), startMaster(t, s).path)
		if err != nil {
			t.Fatal(err)
		}
		sessiontest.Outlives(t, m, refused, func(drain context.Context, x fleet.Executor, cmd fleet.Command) fleet.Result {
			return run(t, x, fanout.Params{Drain: drain}, cmd, &sshtest.Told{})
		})
		m.Close()
		<-m.Done()
	}
}

// TestHungMaster: a master that stops is waited for no longer than asked, and loses the line.
func TestHungMaster(t *testing.T) {
	hung := startMaster(t, sshtest.StartSshdForOther(t, "Subsystem echo /bin/cat"))
	m, err := mux.Open(t.Context(), hung.path)
	if err != nil {
		t.Fatal(err)
	}
	if err := hung.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for _, a := range []line.Ask{{Kind: line.Subsystem, Text: "echo"}, {Kind: line.Forward, Text: "127.0.0.1:1"}} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := m.Open(ctx, a); err == nil {
			t.Errorf("%s: opened", a.Kind)
		}
		cancel()
	}
	<-m.Done()
}

// TestPermit: over a connection that is there a command leaves when the run permits it, however
// long that takes, and otherwise does not.
func TestPermit(t *testing.T) {
	m := startMaster(t, sshtest.StartSshdForOther(t))
	for _, no := range []error{nil, errors.New("not yours")} {
		x := &shared{path: m.path, timeout: 2 * time.Second}
		p := fanout.Params{Permit: func(context.Context, int) error {
			time.Sleep(x.timeout + 100*time.Millisecond)
			return no
		}}
		r := run(t, x, p, fleet.Command{Line: "echo ran"}, &sshtest.Told{})
		if ran := r.OutBytes == 4 && r.Status() == fleet.OK; x.err != nil || ran != (no == nil) || no != nil && (r.Status() != fleet.NotStarted || r.Err != no.Error()) {
			t.Errorf("%v: %+v, %v", no, r, x.err)
		}
	}
}
