package dial

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/session"
	"sshpace/internal/ssh/transport"
)

// Options of an Engine. The zero value is the documented default.
type Options struct {
	// Askpass asks a person for the passphrase of the key at path; nil never asks, and encrypted
	// keys are used through the agent only.
	Askpass func(ctx context.Context, path string) ([]byte, error)
	// Holder starts a process that reads key files and signs (HoldKeys), and asks for passphrases
	// on the terminal of Person; if it is nil, this process does.
	Holder func() (io.ReadWriteCloser, error)
	Person *Person
	// Warn is called for an agent that holds everybody up; nil is never called.
	Warn func(text ...string)
	// Lookup resolves names; nil is the system's resolver.
	Lookup func(ctx context.Context, network, name string) ([]netip.Addr, error)
	// NoKillSession forbids a second session for ending a command whose server refuses signals
	// (root, old servers). A forced command of root (sshd_config(5) ForceCommand) would run once
	// more in that session; it cannot be recognized.
	NoKillSession bool
	// Step is called for every step of a login and its command, of any host; nil is never called.
	Step func(transport.Step)
}

// Engine runs commands in this process. It keeps everything that hosts share: the agent's
// connection, parsed keys, addresses and the connections to jump hosts.
type Engine struct {
	resolver Resolver
	opts     Options
	names    *names
	keys     *keyring
	jumps    line.Pool[jumpKey]
	kept     kept
	tables   sync.Once
	life     context.Context // of the connections to agents and jump hosts
	die      context.CancelFunc
}

var _ fleet.Executor = (*Engine)(nil)

// New makes an Engine. The caller closes it.
func New(r Resolver, opts Options) *Engine {
	e := &Engine{
		resolver: r, opts: opts,
		names: newNames(opts.Lookup),
		jumps: line.Pool[jumpKey]{Idle: jumpIdle, Memory: jumpMemory},
	}
	e.life, e.die = context.WithCancel(context.Background())
	e.keys = &keyring{
		agents: newAgents(e.life, opts.Warn), files: newKeyFiles(opts), sets: make(map[string]*sched.Together[*keySet]),
	}
	return e
}

// Naming is the number of names without an answer yet.
func (e *Engine) Naming() int { return int(e.names.asked.Load()) }

// Close ends everything that hosts shared.
func (e *Engine) Close() error {
	e.die()
	e.kept.close()
	e.jumps.Close()
	e.Forget()
	return nil
}

// Forget drops all keys; a Holder ends. It is called between logins: the next one reads them again.
func (e *Engine) Forget() { e.keys.forget() }

// FDs returns how many files a host needs: one socket.
func (e *Engine) FDs() int { return 1 }

const engineName = "native"

// Execute runs cmd on h; see fleet.Executor.
func (e *Engine) Execute(ctx context.Context, h host.Host, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	t, err := e.resolver.Target(ctx, h)
	if err != nil {
		return failed(asError(ctx, err), fleet.RanNo)
	}
	return e.Run(ctx, t, cmd, a)
}

// Run runs cmd on a target that is resolved already.
func (e *Engine) Run(ctx context.Context, t *Target, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	if o, ok := e.onKept(ctx, t, cmd, a); ok {
		return o
	}
	ahead, seen := t.ahead(cmd), seenBy(a)
	if seen != nil {
		ahead = nil
	}
	l, err := e.connect(ctx, t, a, ahead)
	if err != nil {
		return unconnected(asError(ctx, err), cmd)
	}
	a.Reached(fleet.PhaseExec)
	if t.Local != nil && cmd.Dialogue == nil && seen == nil {
		l.local(ctx, t, a)
		if ctx.Err() != nil {
			l.Close()
			return failed(interrupted(ctx), fleet.RanNo)
		}
	}
	return e.runOn(ctx, l, t, cmd, a)
}

// runOn runs cmd on a connection, which it then keeps or closes.
func (e *Engine) runOn(ctx context.Context, l *link, t *Target, cmd fleet.Command, a fleet.Attempt) fleet.Outcome {
	a.Reached(fleet.PhaseExec)
	starting, cancel := context.WithDeadlineCause(ctx, l.usable, fleet.ErrConnectTimeout)
	defer cancel()
	cmd.Env = slices.Concat(t.Env, cmd.Env)
	o, err := l.Run(ctx, starting, cmd, a)
	if failed, ok := errors.AsType[*session.NotStarted](err); ok {
		o = failed.Outcome
	} else if seen := seenBy(a); seen != nil && ctx.Err() == nil {
		seen.ask(ctx, l)
	}
	o.Err = clip(o.Err)
	e.kept.leave(t, l, &o)
	return o
}

// Open logs in to a target, and returns the connection. It is kept alive, and its user closes it.
// An error is an *Error. Nobody observes the login if p is nil.
func (e *Engine) Open(ctx context.Context, t *Target, p Progress) (*session.Connection, error) {
	if p == nil {
		p = unobserved{}
	}
	l, err := e.connect(ctx, t, p, nil)
	if err != nil {
		return nil, asError(ctx, err)
	}
	return &l.Connection, nil
}

// local runs the LocalCommand of the target, in a time of its own.
func (l *link) local(ctx context.Context, t *Target, a fleet.Attempt) {
	began := time.Now()
	t.Local(ctx, fleet.Writer{Attempt: a, Stream: fleet.Stdout}, fleet.Writer{Attempt: a, Stream: fleet.Stderr})
	l.usable = l.usable.Add(time.Since(began))
}

// ahead returns the request for a session of the target; nil if that has to wait until it is open.
func (t *Target) ahead(cmd fleet.Command) *transport.Command {
	if t.Local != nil && cmd.Dialogue == nil || cmd.Terminal {
		return nil
	}
	talks := cmd.Dialogue != nil
	return &transport.Command{Line: cmd.Line, Subsystem: talks && !cmd.Program, Env: slices.Concat(t.Env, cmd.Env), EOF: cmd.Input == nil && !talks}
}

// unconnected returns the outcome of an attempt without a connection. A Dialogue has said nothing
// by then.
func unconnected(e *Error, cmd fleet.Command) fleet.Outcome {
	if e.MayRun && cmd.Dialogue == nil {
		e.Hint = "the command was sent with the login and may run there: check before you run it again"
		return failed(e, fleet.RanUnknown)
	}
	return failed(e, fleet.RanNo)
}

// lost describes the end of a connection, "" while it is alive.
func (k *keepAlive) lost() string {
	switch {
	case k.expired.Load():
		return fleet.Silent
	case !within(k.link.Done(), lossNotice):
		return ""
	case errors.Is(k.link.Wait(), transport.ErrTampered):
		return strings.TrimPrefix(transport.ErrTampered.Error(), "ssh: ") + ": connection lost"
	}
	return "connection lost"
}

// lossNotice is how long after a channel the end of its connection may show.
const lossNotice = 100 * time.Millisecond

func within(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// failed returns the outcome of an attempt that ended with an error. Servers choose parts of the
// text, so it is cleaned here.
func failed(e *Error, ran fleet.Ran) fleet.Outcome {
	return fleet.Outcome{
		Engine: engineName, Ran: ran, Class: e.Class, Exit: -1,
		Err: termsafe.Line(clip(e.Text)), Hint: termsafe.Line(clip(e.Hint)), Cause: e,
		SlowDown: e.SlowDown && ran == fleet.RanNo, Closed: e.Closed,
	}
}

// Outcome returns the outcome of an attempt that ended with the error, and asked for nothing.
func (e *Error) Outcome() fleet.Outcome { return failed(e, fleet.RanNo) }

// maxText is how much of an error is shown; a server's list of algorithms can be of any length.
const maxText = 1000

func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	return strings.ToValidUTF8(s[:maxText], "") + "..."
}
