package mux

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/session"
)

// engineName is the name in results.
const engineName = "master"

// Session is a command to run over a master.
type Session struct {
	Path    string // of the socket
	Command fleet.Command
	// Timeout bounds everything up to the start of the command; 0 is fleet.ConnectTimeout.
	Timeout time.Duration
}

// Run runs the command. An error means that nothing has run: os.ErrNotExist without a socket,
// otherwise an *Error. There is no second session against refused signals: it would end the other
// sessions of the master.
func (s *Session) Run(ctx context.Context, a fleet.Attempt) (fleet.Outcome, error) {
	m, err := s.open(ctx)
	if err != nil {
		return fleet.Outcome{}, err
	}
	var o fleet.Outcome
	if err = a.Admit(ctx, ""); err == nil {
		starting, cancel := s.soon(ctx)
		defer cancel()
		o, err = m.Run(ctx, starting, s.Command, a)
	} else {
		o = m.Result
		o.Exit = -1
		o.Stop(context.Cause(ctx))
	}
	m.Close()
	<-m.Done()
	failed, ok := errors.AsType[*session.NotStarted](err)
	switch {
	case !ok:
		return o, nil
	case failed.Outcome.Ran != fleet.RanNo, errors.Is(failed, session.ErrRefused):
		return failed.Outcome, nil
	}
	return fleet.Outcome{}, s.survived(s.unopened(failed))
}

func (s *Session) open(ctx context.Context) (*Master, error) {
	ctx, cancel := s.soon(ctx)
	defer cancel()
	return Open(ctx, s.Path)
}

func (s *Session) soon(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, cmp.Or(max(s.Timeout, 0), fleet.ConnectTimeout), fleet.ErrConnectTimeout)
}

// unopened returns why there is no session.
func (s *Session) unopened(e *session.NotStarted) error {
	err := cmp.Or(e.Late, e.Err)
	no, isRefused := errors.AsType[*ssh.OpenChannelError](err)
	switch {
	case errors.Is(err, session.ErrNoSubsystem):
		return &Error{s.Path, "has no such subsystem for this user", err}
	case errors.Is(err, fleet.ErrConnectTimeout):
		return &Error{s.Path, "opened no session in time: its connection may be dead", err}
	case isRefused:
		return &Error{s.Path, "got no further session: " + cmp.Or(no.Message, no.Reason.String()) + " (MaxSessions on the server?)", err}
	case errors.Is(err, io.EOF):
		return &Error{s.Path, "closed the connection", err}
	}
	return &Error{s.Path, "is unusable: " + reason(err), err}
}

// survived adds to a refusal by the server that the master has ended because of it, if so:
// OpenSSH's does not forget a channel that was refused to a client in proxy mode, and fails when
// that leaves (channels.c, channel_proxy_upstream; chan_send_close2).
func (s *Session) survived(err error) error {
	own := (*Error)(nil)
	if _, refused := errors.AsType[*ssh.OpenChannelError](err); !refused || !errors.As(err, &own) {
		return err
	}
	const looks, pause = 15, 10 * time.Millisecond
	for range looks {
		if !openssh.Listens(s.Path) {
			own.Text += "; OpenSSH's master has ended over that, and its sessions with it"
			break
		}
		time.Sleep(pause)
	}
	return own
}
