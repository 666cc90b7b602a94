package mux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
)

// converse holds the command's Dialogue with the subsystem that its line names. An
// error means that nothing was said.
func (r *running) converse(ctx, starting context.Context, conn *channel.Conn) (fleet.Outcome, error) {
	ch, asked, err := r.subsystem(starting, conn)
	switch {
	case err == nil:
	case asked && !errors.Is(err, errNoSubsystem):
		return r.unanswered(starting), nil
	default:
		return fleet.Outcome{}, r.unopened(err)
	}
	r.attempt.Reached(fleet.PhaseExec)
	go io.Copy(stderr{r.attempt}, ch.Stderr())
	defer sched.After(ctx, func() time.Duration { return fleet.DialogueGrace }, func() { r.link.conn.Close() })()
	err = r.session.Command.Dialogue(ctx, r.attempt.Host(), conversation{ch, conn, r})
	r.attempt.Reached(fleet.PhaseExit)
	o := fleet.Outcome{Engine: engineName, Addr: r.session.Path, Ran: fleet.RanYes}
	o.Conversed(ctx, err, r.link.loss())
	return o, nil
}

// subsystem starts the subsystem; asked is after it was asked for.
func (r *running) subsystem(ctx context.Context, conn *channel.Conn) (ch ssh.Channel, asked bool, err error) {
	stop := context.AfterFunc(ctx, func() { r.link.conn.Close() })
	ch, requests, err := conn.OpenChannel("session", nil)
	if err == nil {
		go ssh.DiscardRequests(requests)
		var ok bool
		asked = true
		ok, err = channel.Start(ch, "subsystem", r.session.Command.Line, r.session.Env)
		if err == nil && !ok {
			err = errNoSubsystem
		}
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	return ch, asked, err
}

// unanswered is a subsystem that may have been started.
func (r *running) unanswered(ctx context.Context) fleet.Outcome {
	o := fleet.Outcome{Engine: engineName, Addr: r.session.Path, Ran: fleet.RanUnknown, Exit: -1}
	switch cause := context.Cause(ctx); {
	case cause == nil:
		o.Class, o.Err = fleet.Lost, "connection lost before the subsystem started"
	case errors.Is(cause, fleet.ErrConnectTimeout):
		o.Class, o.Err = fleet.TimedOut, "the server did not answer the request for the subsystem in time"
	default:
		o.Class, o.Err = fleet.Stopped(cause)
	}
	return o
}

var errNoSubsystem = errors.New("has no such subsystem for this user")

// stderr is where a subsystem's standard error goes.
type stderr struct{ attempt *fleet.Attempt }

func (s stderr) Write(p []byte) (int, error) { return len(p), s.attempt.Output(fleet.Stderr, p) }

// conversation is the subsystem as a Dialogue sees it.
type conversation struct {
	ssh.Channel
	conn *channel.Conn
	of   *running
}

var _ fleet.Channel = conversation{}

// Output hands on what the Dialogue says.
func (c conversation) Output(s fleet.Stream, data []byte) error { return c.of.attempt.Output(s, data) }

// Exec runs a command in another session of the master's. It is not asked for in proxy
// mode: a master whose server gives no further session ends then, and all on it.
func (c conversation) Exec(ctx context.Context, line string, input io.Reader) ([]byte, error) {
	out, exit, err := c.of.session.execPassed(ctx, line, input, fleet.MaxExec)
	if refused := (*Error)(nil); errors.As(err, &refused) {
		return nil, fmt.Errorf("%w: %w", fleet.ErrNoExec, err)
	}
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	return fleet.Executed(ctx, out, exit)
}
