package dial

import (
	"context"
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
func (e *Engine) handshake(ctx context.Context, t *Target, keys *keySet, p progress, raw net.Conn, command *transport.Command) (*link, error) {
	l := &login{ctx: ctx, target: t, set: keys}
	h := &hand{target: t, login: l, net: tcp.Quick(raw), progress: p, step: e.step}
	config, err := h.config()
	if err != nil {
		raw.Close()
		return nil, asError(ctx, err)
	}
	h.reach(fleet.PhaseKex)
	p.Distance(h.net.RoundTrip())
	stop := context.AfterFunc(ctx, func() { h.net.Close() }) // a connection through a jump host has no deadlines
	e.tables.Do(func() { go fillTables() })                  // while the server answers
	err = h.shake(config, command)
	if inTime := stop(); err == nil && !inTime {
		err = context.Cause(ctx)
	}
	if err != nil {
		h.net.Close()
		failure := h.failed(ctx, err)
		failure.MayRun = h.own.Asked()
		l.reported(failure)
		return nil, failure
	}
	l.reported(nil)
	l.succeeded()
	return e.link(ctx, h), nil
}

// link returns the connection of a handshake.
func (e *Engine) link(ctx context.Context, h *hand) *link {
	l := &link{net: h.net, Connection: session.Connection{
		Named: h.own.Mux(h.target.User), Result: fleet.Outcome{Engine: engineName, Addr: h.net.RemoteAddr().String()},
		Asked: h.own.Asked(), Banner: h.own.Banner(), MayKill: !e.opts.NoKillSession,
		Began: func() { e.step(transport.StepExec) }, Ended: func() { e.step(transport.StepExit) },
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
	progress progress
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
	login.Ahead, login.Early = command, h.progress.Near
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
	name, port := t.hostKeyName()
	return t.HostKeys.Algorithms(ctx, name, port, t.HostKeyAlgorithms)
}

func (h *hand) checkHostKey(key ssh.PublicKey) error {
	h.reach(fleet.PhaseHostkey)
	name, port := h.target.hostKeyName()
	if err := h.target.checkHostKey(h.login.ctx, name, port, h.net.RemoteAddr(), key); err != nil {
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
	return func(s transport.Step) { openssh.WriteEvent(w, openssh.Event{Kind: events[s]}) }
}
