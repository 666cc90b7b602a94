package dial

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/session/sessiontest"
	"sshpace/internal/ssh/sshtest"
)

// anyKey trusts every key.
type anyKey struct{}

func (anyKey) Algorithms(context.Context, string, int, []string) ([]string, error) {
	return []string{ssh.KeyAlgoED25519}, nil
}

func (anyKey) Check(context.Context, string, int, net.Addr, ssh.PublicKey) error { return nil }

// run runs a command with an engine.
func run(t *testing.T, drain context.Context, x fleet.Executor, cmd fleet.Command) fleet.Result {
	t.Helper()
	sink := &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), fanout.Params{Drain: drain}, []host.Host{{Name: "h"}}, cmd, x, sink); err != nil {
		t.Fatal(err)
	}
	return sink.Results()[0]
}

// TestGiven: whatever becomes of the commands on a connection, it stays, and so do its other
// channels.
func TestGiven(t *testing.T) {
	refusing := (&sshtest.Server{RefuseExec: true, Exec: func(x *sshtest.Session) { io.Copy(x, x) }}).Start(t)
	s := sshtest.StartSshdForOther(t, "Subsystem echo /bin/cat")
	e := New(nil, Options{})
	defer e.Close()
	for refused, port := range map[bool]int{false: s.Port, true: refusing.Port()} {
		l, err := e.connect(t.Context(), &Target{HostName: "127.0.0.1", Port: port, User: s.User, HostKeys: anyKey{}, Identity: Identity{Files: []string{s.Key}}}, unobserved{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		sessiontest.Outlives(t, l, refused, func(drain context.Context, x fleet.Executor, cmd fleet.Command) fleet.Result {
			return run(t, drain, x, cmd)
		})
		l.Close()
	}
}

// behind resolves every host to one behind a jump host.
type behind Target

func (b *behind) Target(context.Context, host.Host) (*Target, error) { return (*Target)(b), nil }

// TestIdleJump: the connection to a jump host ends when no host has used it for some time, and is
// made again for the next one.
func TestIdleJump(t *testing.T) {
	bastion, s := (&sshtest.Server{}).Start(t), (&sshtest.Server{}).Start(t)
	key, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	target := func(port int, jump *Target) *Target {
		return &Target{HostName: "127.0.0.1", Port: port, User: "u", HostKeys: anyKey{}, Identity: Identity{Files: []string{key}}, Jump: jump}
	}
	e := New((*behind)(target(s.Port(), target(bastion.Port(), nil))), Options{})
	defer e.Close()
	if e.jumps.Idle < time.Minute {
		t.Errorf("idle for %v", e.jumps.Idle)
	}
	e.jumps.Idle = 100 * time.Millisecond
	for made := range 3 {
		if r := run(t, nil, e, fleet.Command{Line: "true"}); r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
		waittest.Until(t, "the idle connection ends", func() bool { return bastion.Open() == 0 })
		if n := bastion.Accepted(); n != made+1 {
			t.Errorf("%d connections, want %d", n, made+1)
		}
	}
}

// fixed resolves every host to one target.
type fixed struct{ t *Target }

func (f fixed) Target(context.Context, host.Host) (*Target, error) { return f.t, nil }

// TestKept: the next command on a target needs no login, unless the connection has ended meanwhile,
// or is in use; a command that was ended takes its connection along, and no more stay open than
// asked for.
func TestKept(t *testing.T) {
	conns := make(chan net.Conn, 10)
	s := (&sshtest.Server{Exec: func(x *sshtest.Session) {
		conns <- x.Conn
		if x.Command == "wait" {
			<-x.Signals
			return
		}
		x.Exit(3)
	}}).Start(t)
	key, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	target := &Target{HostName: "127.0.0.1", Port: s.Port(), User: "u", HostKeys: anyKey{}, Identity: Identity{Files: []string{key}}}
	e := New(fixed{target}, Options{})
	e.Keep(1)
	logins := 0
	for _, step := range []struct {
		what   string
		cmd    string
		hosts  int
		logins int
	}{{"first", "x", 1, 1}, {"next", "x", 1, 0}, {"two hosts at once", "x", 2, 1}, {"ended", "wait", 1, 0}, {"after that", "x", 1, 1}, {"cut", "cut", 1, 1}} {
		if step.what == "cut" {
			for len(conns) > 0 {
				(<-conns).Close()
			}
			waittest.Until(t, "the end of the connection", func() bool { return s.Open() == 0 })
		}
		logins += step.logins
		sink := &sshtest.Told{}
		if _, err := fanout.Run(t.Context(), fanout.Params{CommandTimeout: map[bool]time.Duration{true: 200 * time.Millisecond}[step.cmd == "wait"]}, []host.Host{{Name: "a"}, {Name: "b"}}[:step.hosts], fleet.Command{Line: step.cmd}, e, sink); err != nil {
			t.Fatal(err)
		}
		for _, r := range sink.Results() {
			if step.cmd != "wait" && (r.Exit != 3 || r.Class != fleet.NoFailure) {
				t.Errorf("%s: %+v", step.what, r)
			}
		}
		if s.Accepted() != logins {
			t.Errorf("%s: %d logins so far, want %d", step.what, s.Accepted(), logins)
		}
		waittest.Until(t, "one connection at most", func() bool { return s.Open() <= 1 })
	}
	e.Close()
	waittest.Until(t, "no connection", func() bool { return s.Open() == 0 })
}
