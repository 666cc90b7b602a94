package reach_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// engine is an executor under test.
type engine struct {
	// Reach makes an executor that reaches servers, each by the host that names its port at
	// 127.0.0.1.
	Reach func(t testing.TB, s servers) fleet.Executor
	// From is the first step at which a server can harm it: one that uses a connection that others
	// have made sees nothing of the steps before.
	From sshtest.Step
	// NoSignals says that it can send a command no signal, and does not know which one ended it, as
	// ssh cannot and does not.
	NoSignals bool
	// NoExec says that it runs no second command over a connection.
	NoExec bool
	// Drawn says that ssh stands between it and a hostile server: one step of each misbehavior, a
	// random one, is enough for a process each.
	Drawn bool
	// Brief says that it consists of what other engines have, so that few runs with hostile servers
	// show whether it does.
	Brief bool
}

// servers are what is to be reached.
type servers struct {
	User, Key      string // who logs in, by which private key file
	HostKey        ssh.PublicKey
	Ports          []int
	ConnectTimeout time.Duration // 0 is more than enough
}

// enough is a time in which everything that ends at all has ended on any machine.
const enough = 2 * time.Minute

func (s servers) hosts() []host.Host {
	all := make([]host.Host, len(s.Ports))
	for i, port := range s.Ports {
		all[i] = host.Host{Name: "127.0.0.1", Port: uint16(port)}
	}
	return all
}

// timeout is the limit of a login.
func (s servers) timeout() time.Duration {
	if s.ConnectTimeout == 0 {
		return enough
	}
	return s.ConnectTimeout
}

// of are the servers that an sshd is.
func of(s *sshtest.Sshd) servers {
	return servers{User: s.User, Key: s.Key, HostKey: s.HostKey, Ports: []int{s.Port}}
}

// run runs a command on servers; the results are in their order. A run that does not end fails the
// test at once: nothing that it holds can be given back.
func (e engine) run(ctx context.Context, t *testing.T, s servers, p fanout.Params, cmd fleet.Command, sink *sshtest.Told) []fleet.Result {
	t.Helper()
	if p.RetryFor == 0 {
		p.RetryFor = time.Millisecond
	}
	x := e.Reach(t, s)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = fanout.Run(ctx, p, s.hosts(), cmd, x, sink)
	}()
	select {
	case <-ended:
	case <-time.After(enough):
		for i := range s.Ports {
			if !slices.ContainsFunc(sink.Results(), func(r fleet.Result) bool { return r.Index == i }) {
				t.Errorf("host %d does not end", i)
			}
		}
		t.FailNow()
	}
	return sink.Results()
}

// one runs a command on one server.
func (e engine) one(t *testing.T, s servers, p fanout.Params, cmd fleet.Command) (fleet.Result, *sshtest.Told) {
	t.Helper()
	sink := &sshtest.Told{}
	return e.run(t.Context(), t, s, p, cmd, sink)[0], sink
}

// signal is a signal as the engine can know it.
func (e engine) signal(name string) string {
	if e.NoSignals {
		return "?"
	}
	return name
}

// commands: output on both streams, input, exit codes and signals arrive, whatever their size.
func (e engine) commands(t *testing.T) {
	s := of(sshtest.StartSshdForOther(t, "AcceptEnv *"))
	big := strings.Repeat("0123456789abcde\n", 1<<18) // 4 MiB: more than any window
	for _, c := range []struct {
		line, input      string
		env              []string
		stdout, stderr   string
		outSize, errSize int // where the text is not named
		exit             int
		signal           string
	}{
		{line: "true"},
		{line: "echo out; echo err >&2; exit 7", stdout: "out\n", stderr: "err\n", exit: 7},
		{line: "exit 255", exit: 255},
		{line: "kill -TERM $$", exit: -1, signal: "TERM"},
		{line: "kill -SEGV $$", exit: -1, signal: "SEGV"},
		{line: "cat", stdout: ""}, // no input is an empty one
		{line: "cat; exit 3", input: "short", stdout: "short", exit: 3},
		{line: "cat; echo warn >&2", input: big, stdout: big, stderr: "warn\n"},
		{line: "head -c 10", input: big, stdout: big[:10]}, // all of it is not read
		{line: "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2", outSize: 3000000, errSize: 3000000},
		{line: `echo "$LC_MINE"`, env: []string{"LC_MINE=a b"}, stdout: "a b\n"},
	} {
		t.Run(c.line, func(t *testing.T) {
			cmd := fleet.Command{Line: c.line, Env: c.env}
			if c.input != "" {
				spool := fleet.SpoolBytes([]byte(c.input))
				defer spool.Close()
				cmd.Input = spool
			}
			r, sink := e.one(t, s, fanout.Params{}, cmd)
			if c.signal != "" {
				c.signal = e.signal(c.signal)
			}
			if r.Ran != fleet.RanYes || r.Class != fleet.NoFailure || r.Exit != c.exit || r.Signal != c.signal || r.Phase != fleet.PhaseExit || r.Attempts != 1 {
				t.Errorf("got %+v", r)
			}
			if c.outSize+c.errSize > 0 {
				if r.OutBytes != int64(c.outSize) || r.ErrBytes != int64(c.errSize) {
					t.Errorf("%d and %d bytes, want %d and %d", r.OutBytes, r.ErrBytes, c.outSize, c.errSize)
				}
				return
			}
			if out, err := sink.Text(fleet.Stdout), sink.Text(fleet.Stderr); out != c.stdout || err != c.stderr {
				t.Errorf("%d bytes %.50q and %q", len(out), out, err)
			}
		})
	}
}
