package dial

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/session"
	"sshpace/internal/ssh/transport"
	"sshpace/internal/sys/tcp"
)

// Progress receives the steps of a login. fleet.Attempt is one.
type Progress interface {
	Admit(ctx context.Context, addr string) error
	Alive()
	Distance(rtt time.Duration)
	// Near reports whether an answer will come soon, so that the command may be sent before the
	// login has succeeded.
	Near() bool
	Reached(fleet.Phase)
}

// unobserved is the progress of a jump connection, which belongs to no host.
type unobserved struct{}

func (unobserved) Admit(context.Context, string) error { return nil }
func (unobserved) Alive()                              {}
func (unobserved) Distance(time.Duration)              {}
func (unobserved) Near() bool                          { return true }
func (unobserved) Reached(fleet.Phase)                 {}

// link is an authenticated connection, kept alive until it is closed.
type link struct {
	session.Connection
	net   *tcp.QuickConn
	alive *keepAlive
	// usable is the deadline for the start of a command: ConnectTimeout covers everything that a
	// server can stall before that.
	usable time.Time
}

// Close ends the link.
func (l *link) Close() error {
	l.alive.timer.Stop()
	err := l.Connection.Close()
	<-l.Done()
	return err
}

// connect dials and logs in, and requests command ahead if there is one and the server accepts
// that. The error is an *Error.
func (e *Engine) connect(ctx context.Context, t *Target, p Progress, command *transport.Command) (*link, error) {
	turn := t.turn(p)
	defer turn.end()
	for {
		l, err := e.login(ctx, t, p, command, turn)
		switch {
		case errors.Is(err, errTurn):
			if turn.await(ctx) != nil {
				return nil, interrupted(ctx)
			}
		case err == nil || !turn.gone:
			return l, err
		case turn.person != nil:
			turn.person.show(linesOf(t.account(), "the server has ended the login meanwhile; it is tried again"))
		}
	}
}

// login connects and logs in once.
func (e *Engine) login(ctx context.Context, t *Target, p Progress, command *transport.Command, turn *turn) (*link, error) {
	addrs, err := e.admitted(ctx, t, p)
	if err != nil {
		return nil, err
	}
	keys, err := e.keys.set(ctx, t) // before the server's time begins: an agent may be silent
	if err != nil {
		return nil, interrupted(ctx)
	}
	growStack()
	limited := patient(ctx, t.connectTimeout())
	defer limited.end()
	raw, err := e.open(limited, t, p, addrs)
	if err != nil {
		return nil, err
	}
	turn.gone = false
	return e.handshake(&login{ctx: limited, turn: turn, target: t, set: keys}, p, raw, command)
}

// admitted resolves the target, and returns when a connection to it may be opened.
func (e *Engine) admitted(ctx context.Context, t *Target, p Progress) ([]netip.Addr, error) {
	if t.HostKeys == nil || t.User == "" || t.HostName == "" {
		return nil, &Error{Class: fleet.Local, Text: fmt.Sprintf("target %q is incomplete", t.HostName)}
	}
	addrs, err := e.addresses(ctx, t, p)
	if err != nil {
		return nil, err
	}
	if err := p.Admit(ctx, admitKey(t, addrs)); err != nil {
		return nil, interrupted(ctx)
	}
	return addrs, nil
}

// open connects to the port of the target.
func (e *Engine) open(ctx *patience, t *Target, p Progress, addrs []netip.Addr) (net.Conn, error) {
	p.Reached(fleet.PhaseConnect)
	step := e.stepper(p)
	step(transport.StepDial)
	raw, err := e.dial(ctx, t, addrs)
	if err == nil {
		step(transport.StepConnect)
	}
	return raw, err
}

// addresses resolves the target; a jump host does it itself.
func (e *Engine) addresses(ctx context.Context, t *Target, p Progress) ([]netip.Addr, error) {
	if t.Jump != nil {
		return nil, nil
	}
	p.Reached(fleet.PhaseDNS)
	found, err := e.names.find(ctx, t.HostName, t.Family)
	if err != nil {
		return nil, nameError(ctx, t.HostName, err)
	}
	seenBy(p).named(found.took)
	return found.addrs, nil
}

// admitKey names the server whose limit on logins counts.
func admitKey(t *Target, addrs []netip.Addr) string {
	if len(addrs) > 0 {
		return netip.AddrPortFrom(addrs[0], uint16(t.port())).String()
	}
	return t.addr()
}

func (e *Engine) dial(ctx *patience, t *Target, addrs []netip.Addr) (net.Conn, error) {
	if t.Jump != nil {
		return e.dialThrough(ctx, t)
	}
	d := net.Dialer{KeepAlive: -1} // keepalive@openssh.com sees more, and this saves four system calls
	if t.BindAddress != "" {
		ip := net.ParseIP(t.BindAddress)
		if ip == nil {
			return nil, &Error{Class: fleet.Local, Text: "BindAddress " + t.BindAddress + " is not an IP address"}
		}
		d.LocalAddr = &net.TCPAddr{IP: ip}
	}
	var last error
	for i, a := range addrs {
		c, err := dialOne(ctx, &d, a, t.port(), len(addrs)-i)
		if err == nil {
			return c, nil
		}
		last = err
		if ctx.Err() != nil {
			break
		}
	}
	return nil, connectError(ctx, t, last)
}

// dialOne tries one address, leaving a fair share of the time to the others.
func dialOne(ctx context.Context, d *net.Dialer, a netip.Addr, port, left int) (net.Conn, error) {
	if end, ok := ctx.Deadline(); ok && left > 1 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(end)/time.Duration(left))
		defer cancel()
	}
	return d.DialContext(ctx, "tcp", net.JoinHostPort(a.String(), strconv.Itoa(port)))
}

// checkLength refuses an RSA key that is too short, as ssh does before it looks a key up
// (sshconnect2.c, verify_host_key_callback).
func (t *Target) checkLength(key ssh.PublicKey) error {
	if bits, least := knownhosts.RSABits(key), t.minRSABits(); bits > 0 && bits < least {
		return because(openssh.HostKeyWeak, fmt.Sprintf("host key of %s is an RSA key of %d bits, RequiredRSASize is %d", cmp.Or(t.HostKeyAlias, t.HostName), bits, least), nil)
	}
	return nil
}

// asError turns any error into an *Error.
func asError(ctx context.Context, err error) *Error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	return &Error{Class: fleet.Local, Text: err.Error(), Err: err}
}

// What a login will need and can have before it waits for it.

// fillTables makes crypto/ed25519 compute its tables, once in a process: a millisecond that costs
// nothing while a server starts a process for us.
func fillTables() {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	ed25519.Verify(key.Public().(ed25519.PublicKey), nil, ed25519.Sign(key, nil))
}

// growStack gives a goroutine the stack of a login at once. It would begin with
// 2 KiB and double four times, each time with more calls to move.
//
//go:noinline
func growStack() {
	var room [16 << 10]byte
	runtime.KeepAlive(&room)
}
