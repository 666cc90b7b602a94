package dial

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/openssh"
)

const (
	// failureMemory is how long a failed jump host is not tried again.
	failureMemory = 30 * time.Second
	// jumpIdle is how long the connection to a jump host waits for the next host behind it. It is
	// more than most pauses between batches, as a login costs the server more than a connection.
	jumpIdle = 10 * time.Minute
)

func jumpMemory(err error) time.Duration {
	if own, ok := err.(*Error); ok && own.SlowDown {
		return 0
	}
	return failureMemory
}

// dialThrough opens a connection to t on its jump host's connection, which all hosts behind that
// jump host share.
func (e *Engine) dialThrough(ctx *patience, t *Target) (net.Conn, error) {
	asks := t.Jump.Prompter != nil
	if asks { // its login has a time of its own, and a person any time
		ctx.give(anyTime)
	}
	jump, put, err := e.jumps.Get(ctx, t.Jump.jumpKey(), func() (line.Line, error) { return e.jump(t.Jump) })
	_, own := err.(*Error)
	switch {
	case errors.Is(err, line.ErrClosed):
		return nil, &Error{Class: fleet.Cancelled, Text: err.Error(), Err: err}
	case err != nil && !own:
		return nil, timedOutOn(ctx, t.Jump)
	case err != nil:
		return nil, err
	}
	if asks {
		ctx.give(t.connectTimeout())
	}
	ch, err := jump.Open(ctx, line.Ask{Kind: line.Forward, Text: t.addr()})
	if err != nil {
		put()
		return nil, throughError(ctx, t, err)
	}
	return &forwarded{ch, put}, nil
}

// forwarded is a connection through a jump host, which alone knows its ends.
type forwarded struct {
	line.Channel
	put func()
}

func (f *forwarded) Close() error {
	defer f.put()
	return f.Channel.Close()
}

// HungUp reports whether the host has ended the connection.
func (f *forwarded) HungUp() bool {
	c, ok := f.Channel.(interface{ HungUp() bool })
	return ok && c.HungUp()
}

func (*forwarded) LocalAddr() net.Addr              { return &net.TCPAddr{IP: net.IPv4zero} }
func (*forwarded) RemoteAddr() net.Addr             { return &net.TCPAddr{IP: net.IPv4zero} }
func (*forwarded) SetDeadline(time.Time) error      { return os.ErrNoDeadline }
func (*forwarded) SetReadDeadline(time.Time) error  { return os.ErrNoDeadline }
func (*forwarded) SetWriteDeadline(time.Time) error { return os.ErrNoDeadline }

// throughError classifies a jump host's refusal (RFC 4254 section 5.1).
func throughError(ctx context.Context, t *Target, err error) *Error {
	where := "connect to host " + t.HostName + " port " + strconv.Itoa(t.port()) + " through " + t.Jump.HostName + ": "
	var open *ssh.OpenChannelError
	switch {
	case ctx.Err() != nil && errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout):
		return &Error{Class: fleet.TimedOut, Text: where + "Connection timed out", Err: err}
	case ctx.Err() != nil:
		return interrupted(ctx)
	case !errors.As(err, &open):
		return &Error{Class: fleet.Lost, Text: where + "the jump host's connection ended", SlowDown: true, Err: err}
	}
	cause := openssh.NotForwarded(open.Message)
	switch open.Reason {
	case ssh.Prohibited:
		cause = openssh.Prohibited
	case ssh.ResourceShortage:
		cause = openssh.Throttled
	}
	e := because(cause, where+open.Message, err)
	e.SlowDown = e.Class == fleet.Throttled
	return e
}

func timedOutOn(ctx context.Context, t *Target) *Error {
	if errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout) {
		return &Error{Class: fleet.TimedOut, Text: "jump host " + t.HostName + ": Connection timed out"}
	}
	return interrupted(ctx)
}

// jump returns a connection to a jump host: an existing one, or our own. It has its own context:
// the first host may give up while others wait.
func (e *Engine) jump(t *Target) (line.Line, error) {
	if t.Shared != nil {
		if l := t.Shared(e.life); l != nil {
			return l, nil
		}
	}
	l, err := e.connect(e.life, t, unobserved{}, nil)
	if err != nil {
		own := *asError(e.life, err)
		own.Text = "jump host " + t.HostName + ": " + own.Text
		return nil, &own
	}
	return l, nil
}
