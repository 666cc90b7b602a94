// Package keep holds connections to hosts for every program that speaks ssh: it logs in to them as
// a run does, and is the master at a socket of each (package mux). What is lost comes back.
package keep

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/session"
	"sshpace/internal/sys/tcp"
)

// Params of a Keeper.
type Params struct {
	Reach     *reach.Executor
	Directory string        // of the sockets of hosts that ssh_config names no ControlPath for
	For       time.Duration // hard end of all connections; 0 is none
	Idle      time.Duration // a connection without a session for that long ends; 0 is none
	Fanout    fanout.Params // of logins
	Asker     *Asker        // that logins use
}

// Keeper holds connections. It is the fleet.Executor whose attempts make them.
type Keeper struct {
	Params
	began  time.Time
	life   context.Context // of all connections
	end    context.CancelFunc
	tasks  sync.WaitGroup
	slept  atomic.Int64  // time that the running clock of began does not know of
	around surroundings  // at the last look
	came   chan struct{} // something has changed that Hold waits for

	refreshing sync.Mutex

	mu     sync.Mutex
	places map[string]*place // by the names of hosts
	events []Event           // the last ones
	tell   func(Event)       // gets each event; nil: nothing does
}

// place is a host of a Keeper.
type place struct {
	host  host.Host
	state State   // "": it is logged in to for the first time
	held  *held   // nil: there is none
	older []*held // that end with their last sessions

	lost    time.Time // when a connection was lost last; zero: none was
	why     string    // it is not there
	tries   int       // to come back, since then
	due     time.Time // when the next one is
	in, out int64     // bytes of the connections before
}

// held is a connection.
type held struct {
	conn   *session.Connection
	server *mux.Server
	path   string                  // of its socket
	drop   context.CancelCauseFunc // ends it
	since  time.Time
	gone   chan struct{} // closed when it has ended
}

// connections returns the present connection and those before it that have not ended.
func (p *place) connections() []*held {
	if p.held == nil {
		return p.older
	}
	return append(slices.Clone(p.older), p.held)
}

// traffic returns the bytes received and sent.
func (h *held) traffic() (in, out int64) {
	if q, ok := h.conn.Net.(*tcp.QuickConn); ok {
		return q.Traffic()
	}
	return 0, 0
}

// State is the state of a host.
type State string

// The states.
const (
	Kept    State = "kept"
	Silent  State = "silent"  // kept, but its server does not answer, and its socket is removed meanwhile
	Back    State = "lost"    // it comes back by itself
	Waiting State = "waiting" // it comes back when it is asked to
)

// Ends of a connection that was not lost.
var (
	errStop = errors.New("stopped")
	errIdle = errors.New("idle")
)

// New makes a Keeper. Its connections end with ctx.
func New(ctx context.Context, p Params) *Keeper {
	k := &Keeper{Params: p, began: time.Now(), places: map[string]*place{}, came: make(chan struct{}, 1)}
	k.life, k.end = context.WithCancel(ctx)
	k.around = around(k.began)
	return k
}

// FDs returns how many files a host needs: a connection, and a socket.
func (k *Keeper) FDs() int { return k.Reach.FDs() + 1 }

// Command is the command of a run that logs in.
var Command = fleet.Command{Text: "keep"}

var _ fleet.Executor = (*Keeper)(nil)

// LogIn logs in to hosts, and keeps them. Those that cannot be reached now are left out.
func (k *Keeper) LogIn(ctx context.Context, hosts []host.Host, sink fleet.Sink) (fleet.Summary, error) {
	k.mu.Lock()
	for _, h := range hosts {
		k.places[h.String()] = &place{host: h}
	}
	k.mu.Unlock()
	defer debug.FreeOSMemory() // connections that wait need less than logins
	defer k.Reach.Forget()
	return fanout.Run(ctx, k.Fanout, hosts, Command, k, output.Tee{sink, &firsts{of: k}})
}

// firsts is the sink of the first login of each host.
type firsts struct {
	fleet.Nothing
	of *Keeper
}

// Done forgets a host that is not kept.
func (f *firsts) Done(r fleet.Result, _ fleet.Summary) error {
	k, name := f.of, r.Host.String()
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.places[name]; p != nil && p.state == "" {
		delete(k.places, name)
	}
	return nil
}

// Execute logs in to a host, and keeps the connection. A host that another master serves is kept
// already.
func (k *Keeper) Execute(ctx context.Context, h host.Host, _ fleet.Command, a fleet.Attempt) fleet.Outcome {
	plan, err := k.Reach.Planned(ctx, h)
	if err != nil {
		return reach.Unreached(err)
	}
	path := plan.Host.ControlPath(k.Directory)
	switch old := k.renewed(h); {
	case plan.Engine == "":
		return reach.Unreached(fault.WithHint(errors.New(plan.Why), sshKeeps))
	case path == "":
		return reach.Unreached(errNoPath)
	case old == nil:
		if err := mux.Taken(path); err != nil {
			return unheard(err)
		}
	}
	conn, err := k.Reach.Open(ctx, h, a)
	if err != nil {
		return reach.Unreached(err)
	}
	a.Reached(fleet.PhaseExec)
	if err = k.hold(h, conn, path, plan.Host); err != nil {
		conn.Close()
		return unheard(err)
	}
	a.Reached(fleet.PhaseExit)
	o := conn.Result
	o.Ran, o.Exit = fleet.RanYes, 0
	return o
}

const sshKeeps = "ssh itself can keep it: ControlMaster auto, ControlPersist and ControlPath in ssh_config"

var errNoPath = fault.WithHint(errors.New("ssh_config sets ControlPath none for this host"), "set ControlPath, or leave it out")

// byOther is the engine of a host that another master serves.
const byOther = "master"

// unheard is the outcome of a host at whose socket no master can listen.
func unheard(err error) fleet.Outcome {
	if !errors.Is(err, mux.ErrLives) {
		return reach.Unreached(err)
	}
	return fleet.Outcome{Engine: byOther, Ran: fleet.RanYes, Note: "kept already"}
}

// renewed returns the connection of a host that another one is to take the place of; nil: there is
// none.
func (k *Keeper) renewed(h host.Host) *held {
	k.mu.Lock()
	defer k.mu.Unlock()
	if p := k.places[h.String()]; p != nil {
		return p.held
	}
	return nil
}

// hold serves a connection at a path until it ends. The one before it takes no more clients, and
// ends with its last session.
func (k *Keeper) hold(h host.Host, conn *session.Connection, path string, c *conf.Resolved) error {
	k.mu.Lock()
	p := k.places[h.String()]
	if p != nil && p.held != nil {
		p.older = append(p.older, p.held)
		p.held.server.Stop()
		p.held = nil
	}
	k.mu.Unlock()
	l, err := mux.Listen(path)
	if err != nil {
		return err
	}
	ctx, drop := context.WithCancelCause(k.life)
	remote, _ := c.Get(conf.PermitRemoteOpen)
	now := &held{
		conn: conn, path: l.Path, drop: drop, since: time.Now(), gone: make(chan struct{}),
		server: &mux.Server{Conn: conn, SendEnv: c.Sendable(), SetEnv: c.List(conf.SetEnv), PermitRemoteOpen: remote.Args},
	}
	k.mu.Lock()
	if p == nil || k.places[h.String()] != p { // it was stopped meanwhile
		k.mu.Unlock()
		l.Close()
		return errStop
	}
	what := map[State]string{"": "kept", Kept: "renewed"}[p.state]
	p.held, p.state, p.tries, p.why = now, Kept, 0, ""
	k.mu.Unlock()
	k.note(h.String(), cmp.Or(what, "back"), conn.Result.Addr)
	k.tasks.Go(func() {
		err := now.server.Serve(ctx, l)
		drop(nil)
		lost := conn.Lost()
		<-conn.Done()
		k.ended(p, now, err, lost)
		close(now.gone)
		k.wake()
	})
	return nil
}

// ended notes the end of a connection.
func (k *Keeper) ended(p *place, end *held, err error, lost string) {
	k.mu.Lock()
	in, out := end.traffic()
	p.in, p.out = p.in+in, p.out+out
	p.older = slices.DeleteFunc(p.older, func(h *held) bool { return h == end })
	name, word, why := p.host.String(), "ended", err.Error()
	switch {
	case p.held != end:
		word = "" // another one is in its place
	case k.life.Err() != nil || asked(err):
		p.held = nil
		delete(k.places, name)
	default:
		if word = "lost"; !errors.Is(err, mux.ErrSilent) {
			why = cmp.Or(lost, why)
		}
		p.held, p.lost, p.why, p.state = nil, time.Now(), why, Back
		p.due = p.lost.Add(backoff(0))
		if end.conn.ByPerson { // who need not be there
			p.state, why = Waiting, why+"; waits for --refresh"
		}
	}
	k.mu.Unlock()
	if word != "" && k.life.Err() == nil {
		k.note(name, word, why)
	}
}

// asked reports whether an end of a connection was requested.
func asked(err error) bool {
	return slices.ContainsFunc([]error{errStop, errIdle, mux.ErrExit, mux.ErrStopped}, func(e error) bool { return errors.Is(err, e) })
}

func (k *Keeper) wake() {
	select {
	case k.came <- struct{}{}:
	default:
	}
}
