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
		sshtest.Outlives(t, l, refused, func(drain context.Context, x fleet.Executor, cmd fleet.Command) fleet.Result {
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
