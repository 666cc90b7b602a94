package dial

import (
	"context"
	"errors"
	"net"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/transport"
)

// handshake exchanges keys and logs in on raw, which it owns. Only package
// transport asks for command ahead.
func (e *Engine) handshake(ctx context.Context, t *Target, keys *keySet, p progress, raw net.Conn, command *transport.Command, classic bool) (*link, error) {
	c := newConn(raw, p.Alive)
	p.Reached(fleet.PhaseKex)
	p.Distance(c.RoundTrip())
	stop := c.closeOn(ctx)
	l := &login{ctx: ctx, target: t, set: keys}
	if _, jump := p.(unobserved); !jump { // the password is the host's
		l.password = e.opts.Password
	}
	h := &hand{target: t, login: l, conn: c, progress: p, step: e.opts.Step, idle: func() { e.tables.Do(func() { go fillTables() }) }}
	link, err := h.shake(command, classic || l.password != nil) // passwords are x/crypto's matter
	if inTime := stop(); err == nil && !inTime {
		link.Close()
		err = context.Cause(ctx)
	}
	if err != nil {
		c.Close()
		failure := handshakeError(ctx, t, c, err)
		failure.MayRun = h.swift != nil && h.swift.Asked()
		if keyword, theirs, ok := Unmatched(err); ok {
			failure.unmatched = t.offers(keyword, theirs)
		}
		l.told(failure)
		return nil, failure
	}
	l.told(nil)
	l.succeeded()
	link.usable, _ = ctx.Deadline()
	return link, nil
}

// version is our version line.
const version = "SSH-2.0-sshpace"

// hand is one handshake with all that it needs.
type hand struct {
	target   *Target
	login    *login
	conn     *conn
	progress progress
	step     func(transport.Step)
	swift    *transport.Conn // nil: x/crypto's, or no key exchange yet
	idle     func()          // what can be done while the server answers
}

func (h *hand) shake(command *transport.Command, classic bool) (*link, error) {
	config := h.config()
	if classic || !transport.Offers(config) {
		return h.classic()
	}
	h.idle()
	var err error
	if h.swift, err = transport.Handshake(h.conn, config); err != nil {
		return nil, err
	}
	login := h.login.keys()
	login.Ahead, login.Early = command, h.progress.Near
	if err := h.swift.Authenticate(login); err != nil {
		if denied, ok := errors.AsType[*transport.DeniedError](err); ok {
			return nil, h.login.denied(denied.Methods, denied.Partial)
		}
		return nil, err
	}
	own := h.swift.Mux(h.target.User)
	return &link{Conn: own, own: own, net: h.conn, addr: h.conn.RemoteAddr().String(), asked: h.swift.Asked()}, nil
}

// classic is x/crypto's handshake.
func (h *hand) classic() (*link, error) {
	t := h.target
	sc, chans, reqs, err := ssh.NewClientConn(h.conn, t.addr(), &ssh.ClientConfig{
		Config:            ssh.Config{KeyExchanges: t.KeyExchanges, Ciphers: t.Ciphers, MACs: t.MACs},
		User:              t.User,
		ClientVersion:     version,
		HostKeyAlgorithms: t.hostKeyAlgorithms(),
		AuthCallback:      h.login.next,
		HostKeyCallback:   func(_ string, _ net.Addr, key ssh.PublicKey) error { return h.checkHostKey(key) },
	})
	if err != nil {
		return nil, err
	}
	return &link{Conn: sc, net: h.conn, chans: chans, reqs: reqs, addr: h.conn.RemoteAddr().String()}, nil
}

func (h *hand) config() *transport.Config {
	t := h.target
	config := &transport.Config{
		Version: version, KeyExchanges: t.KeyExchanges, Ciphers: t.Ciphers, MACs: t.MACs, HostKeys: t.hostKeyAlgorithms(),
		HostKey: h.checkHostKey, Step: h.step,
	}
	if config.HostKeys == nil {
		config.HostKeys = ssh.SupportedAlgorithms().HostKeys
	}
	return config
}

// hostKeyAlgorithms are those to offer; nil is x/crypto's default.
func (t *Target) hostKeyAlgorithms() []string {
	if t.KeepHostKeyOrder {
		return t.HostKeyAlgorithms
	}
	name, port := t.hostKeyName()
	return t.HostKeys.Algorithms(name, port, t.HostKeyAlgorithms)
}

func (h *hand) checkHostKey(key ssh.PublicKey) error {
	h.reach(fleet.PhaseHostkey)
	name, port := h.target.hostKeyName()
	if err := h.target.checkHostKey(name, port, h.conn.RemoteAddr(), key); err != nil {
		return err
	}
	h.reach(fleet.PhaseAuth)
	return nil
}

func (h *hand) reach(p fleet.Phase) {
	h.progress.Reached(p)
	h.conn.reach(p)
}
