package dial

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/session"
	"sshpace/internal/ssh/transport"
	"sshpace/internal/sys/tcp"
)

// handshake exchanges keys and logs in on raw, which it owns.
func (e *Engine) handshake(l *login, p Progress, raw net.Conn, command *transport.Command) (*link, error) {
	ctx := l.ctx
	h := &hand{target: l.target, login: l, net: tcp.Quick(raw), progress: p, seen: seenBy(p), step: e.stepper(p)}
	l.hungUp = h.net.HungUp
	config, err := h.config()
	if err != nil {
		raw.Close()
		return nil, asError(ctx, err)
	}
	e.tables.Do(func() { go fillTables() }) // while the server answers
	if failure := h.during(ctx, func() error { return h.shake(config, command) }); failure != nil {
		h.net.Close()
		failure.MayRun = h.own.Asked()
		l.turn.gone = l.turn.gone && !failure.MayRun
		l.reported(failure)
		return nil, failure
	}
	l.reported(nil)
	l.succeeded()
	if l.byPerson() {
		ctx.give(l.target.connectTimeout())
	}
	return e.link(ctx, h), nil
}

// during has a conversation with the server, which ends with ctx.
func (h *hand) during(ctx context.Context, talk func() error) *Error {
	h.reach(fleet.PhaseKex)
	away := h.net.RoundTrip()
	h.progress.Distance(away)
	defer func() { h.seen.handshake(h.own, away) }()
	stop := context.AfterFunc(ctx, func() { h.net.Close() }) // a connection through a jump host has no deadlines
	err := talk()
	if inTime := stop(); err == nil && !inTime {
		err = context.Cause(ctx)
	}
	if err != nil {
		return h.failed(ctx, err)
	}
	return nil
}

// errShown ends a handshake in which only the server's key was wanted.
var errShown = errors.New("the host key was shown")

// HostKey returns the key that a server shows and proves to hold, by one of some algorithms (nil:
// those of a login there), and all host key algorithms that it has. It does not log in. The key is
// nil if the outcome is a failure; HostKeys decides about the key later.
func (e *Engine) HostKey(ctx context.Context, t *Target, algorithms []string, a fleet.Attempt) (key ssh.PublicKey, offered []string, o fleet.Outcome) {
	addrs, err := e.admitted(ctx, t, a)
	if err != nil {
		return nil, nil, failed(asError(ctx, err), fleet.RanNo)
	}
	limited := patient(ctx, t.connectTimeout())
	defer limited.end()
	ctx = limited
	raw, err := e.open(limited, t, a, addrs)
	if err != nil {
		return nil, nil, failed(asError(ctx, err), fleet.RanNo)
	}
	h := &hand{target: t, login: &login{ctx: limited, target: t}, net: tcp.Quick(raw), progress: a, step: e.stepper(a)}
	defer h.net.Close()
	config, err := h.config()
	if err != nil {
		return nil, nil, failed(asError(ctx, err), fleet.RanNo)
	}
	if algorithms != nil {
		config.HostKeys = algorithms
	}
	config.HostKey = func(shown ssh.PublicKey) error {
		h.reach(fleet.PhaseHostkey)
		key = shown
		return cmp.Or(t.checkLength(shown), errShown)
	}
	failure := h.during(ctx, func() (err error) {
		if h.own, err = transport.Handshake(h.net, config); errors.Is(err, errShown) {
			return nil
		}
		return err
	})
	if failure != nil {
		return nil, nil, failed(failure, fleet.RanNo)
	}
	return key, h.own.Theirs().HostKey, fleet.Outcome{Engine: engineName, Ran: fleet.RanYes, Addr: h.net.RemoteAddr().String()}
}

// link returns the connection of a handshake.
func (e *Engine) link(ctx context.Context, h *hand) *link {
	step := h.step // the rest of h is for the login alone
	l := &link{net: h.net, Connection: session.Connection{
		Named: h.own.Mux(h.target.User), Result: fleet.Outcome{Engine: engineName, Addr: h.net.RemoteAddr().String()},
		ByPerson: h.login.byPerson(), Asked: h.own.Asked(), Banner: h.own.Banner(), MayKill: !e.opts.NoKillSession,
		Opened: func() { step(transport.StepOpen) }, Began: func() { step(transport.StepExec) }, Ended: func() { step(transport.StepExit) },
	}}
	l.usable, _ = ctx.Deadline()
	l.keepAlive(h.target)
	l.Lost = l.alive.lost
	return l
}

// hand is one handshake with its needs.
type hand struct {
	target   *Target
	login    *login
	net      *tcp.QuickConn
	progress Progress
	seen     *Seen // nil: nobody watches
	step     func(transport.Step)
	own      *transport.Conn
	phase    fleet.Phase
}

func (h *hand) shake(config *transport.Config, command *transport.Command) (err error) {
	if h.own, err = transport.Handshake(h.net, config); err != nil {
		return err
	}
	defer h.login.bind(h.own.Binding())()
	login := h.login.methods()
	login.Ahead, login.Early, login.Apart = command, h.progress.Near, h.seen != nil
	return h.login.failed(h.own.Authenticate(login))
}

func (h *hand) config() (*transport.Config, error) {
	t := h.target
	algorithms, err := t.hostKeyAlgorithms(h.login.ctx)
	if err != nil {
		return nil, err
	}
	if algorithms == nil {
		algorithms = ssh.SupportedAlgorithms().HostKeys
	}
	return &transport.Config{
		Version: transport.Version, KeyExchanges: t.KeyExchanges, Ciphers: t.Ciphers, MACs: t.MACs, HostKeys: algorithms,
		HostKey: h.checkHostKey, Step: h.stepped,
	}, nil
}

func (h *hand) stepped(s transport.Step) {
	if s == transport.StepVersion {
		h.progress.Alive()
	}
	h.step(s)
}

// hostKeyAlgorithms returns the host key algorithms to offer; nil means all secure ones.
func (t *Target) hostKeyAlgorithms(ctx context.Context) ([]string, error) {
	if t.KeepHostKeyOrder {
		return t.HostKeyAlgorithms, nil
	}
	name, port := t.HostKeyName()
	return t.HostKeys.Algorithms(ctx, name, port, t.HostKeyAlgorithms)
}

func (h *hand) checkHostKey(key ssh.PublicKey) error {
	h.reach(fleet.PhaseHostkey)
	if err := h.target.checkLength(key); err != nil {
		return err
	}
	name, port := h.target.HostKeyName()
	if err := h.target.HostKeys.Check(h.login.ctx, name, port, h.net.RemoteAddr(), key); err != nil {
		return err
	}
	h.reach(fleet.PhaseAuth)
	return nil
}

func (h *hand) reach(p fleet.Phase) {
	h.progress.Reached(p)
	h.phase = p
}

// events translates the steps of a login into those of ssh's log.
var events = map[transport.Step]openssh.Kind{
	transport.StepDial:     openssh.Connecting,
	transport.StepConnect:  openssh.Connected,
	transport.StepVersion:  openssh.ServerVersion,
	transport.StepKexInit:  openssh.KexInit,
	transport.StepKexReply: openssh.HostKeySeen,
	transport.StepHostKey:  openssh.NewKeysSent,
	transport.StepNewKeys:  openssh.NewKeys,
	transport.StepService:  openssh.AuthStarted,
	transport.StepQuery:    openssh.KeyAccepted,
	transport.StepAuth:     openssh.LoggedIn,
	transport.StepExec:     openssh.CommandAccepted,
	transport.StepExit:     openssh.ExitStatus,
}

// LogSteps writes the steps of a login, each as it happens.
func LogSteps(w io.Writer) func(transport.Step) {
	return func(s transport.Step) {
		if kind, known := events[s]; known {
			openssh.WriteEvent(w, openssh.Event{Kind: kind})
		}
	}
}
