// Package session runs a command, or holds a Dialogue, on a connection with channels (RFC 4254
// section 6), of any maker: it requests the command, feeds it, passes on its output, ends it when
// the run does, and reports whether it may have run. It does not know how connections are made, and
// leaves them open.
package session

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/openssh"
)

// Connection is a line.Line that has channels.
type Connection struct {
	*channel.Named
	Result  fleet.Outcome // facts about the connection: engine and address
	Asked   bool          // the first command has left already, see transport
	MayKill bool          // a second session may end commands that refuse signals
	Banner  string        // the last line that the server sent for people to read
	// ByPerson is set for a login that needs a person: without one there is no other.
	ByPerson bool
	// Lost describes the end of a connection, "" while it is alive.
	Lost func() string
	// Beside, if set, opens other channels for a Dialogue.
	Beside line.Line
	// Opened, Began and Ended are called when a command's session is open, when the command was
	// granted, and when it is over; may be nil.
	Opened, Began, Ended func()

	first sync.Once // command has begun
}

var _ line.Line = (*Connection)(nil)

// NotStarted is a session that did not start.
type NotStarted struct {
	// Outcome describes it to people. Ran is RanUnknown if the command has left, and nothing shows
	// that it does not run.
	Outcome fleet.Outcome
	// Err is ErrRefused, ErrNoSubsystem, an *ssh.OpenChannelError, or the end of the connection.
	Err  error
	Late error // why the time for it was over by then, nil if it was not
}

func (e *NotStarted) Error() string { return e.Err.Error() }

func (e *NotStarted) Unwrap() error { return e.Err }

// Refusals of a server.
var (
	ErrRefused     = errors.New("the server refused to run the command")
	ErrNoTerminal  = errors.New("the server gives no terminal")
	ErrNoSubsystem = errors.New("the server has no SFTP for this user (Subsystem in its sshd_config)")
)

// notStarted reports whether a command may run although its session did not start: it does not if
// it was never asked for, or if the server has refused it.
func (c *Connection) notStarted(starting context.Context, err error, asked bool) *NotStarted {
	e := &NotStarted{Outcome: c.Result, Err: err, Late: context.Cause(starting)}
	o := &e.Outcome
	o.Ran, o.Exit, o.Cause = fleet.RanUnknown, -1, e
	unopened, isUnopened := errors.AsType[*ssh.OpenChannelError](err)
	refused := errors.Is(err, ErrRefused) || errors.Is(err, ErrNoTerminal) || errors.Is(err, ErrNoSubsystem)
	if !asked || isUnopened || refused {
		o.Ran = fleet.RanNo
	}
	switch late := errors.Is(e.Late, fleet.ErrConnectTimeout); {
	case late && o.Ran == fleet.RanNo:
		o.Class, o.Err = fleet.TimedOut, "the server let us in, but did not open a session in time"
		o.Hint = "the server may be out of processes or memory; " + openssh.TimedOut.Advice()
	case late:
		o.Class, o.Err = fleet.TimedOut, "the server did not answer the request to run the command in time; it may run there"
	case e.Late != nil:
		o.Stop(e.Late)
	case isUnopened:
		o.Class, o.Err, o.Hint = fleet.ExecRefused, "the server refused the session: "+termsafe.Line(unopened.Message), openssh.SessionRefused.Advice()
	case refused:
		o.Class, o.Err = fleet.ExecRefused, err.Error()
	case c.Lost() == fleet.Silent:
		o.Class, o.Err = fleet.Lost, fleet.Silent
	default:
		o.Class, o.Err = fleet.Lost, cmp.Or(c.Lost(), "connection lost")+" before the command started"
	}
	return e
}

// Run runs a command, which must have been granted when starting ends. The error is a *NotStarted.
// The connection stays open, unless nothing else would end the command, or its server does not
// answer.
func (c *Connection) Run(ctx, starting context.Context, cmd fleet.Command, a fleet.Attempt) (fleet.Outcome, error) {
	defer context.AfterFunc(a.Abort(), c.cut)()
	begun := sched.After(starting, func() time.Duration { return fleet.AnswerGrace(starting) }, c.cut)
	defer begun()
	asked := false
	c.first.Do(func() { asked = c.Asked })
	if cmd.Dialogue != nil {
		return c.hold(ctx, starting, begun, cmd, a)
	}
	s, err := c.open(a.Output)
	if err != nil {
		return fleet.Outcome{}, c.notStarted(starting, err, asked)
	}
	notify(c.Opened)
	if err := context.Cause(ctx); err != nil && !asked { // otherwise no further request is made
		s.leave()
		return fleet.Outcome{}, c.notStarted(starting, err, asked)
	}
	a.Reached(fleet.PhaseExec)
	err = s.start(cmd)
	if !begun() && err == nil {
		err = context.Cause(starting)
	}
	if err != nil {
		failed := c.notStarted(starting, err, true)
		if s.leave(); failed.Outcome.Ran == fleet.RanNo || !s.end.reported() {
			return fleet.Outcome{}, failed
		}
		a.Reached(fleet.PhaseExit)
		return s.outcome(ctx), nil
	}
	notify(c.Began)
	defer s.untilEnd(ctx, a, cmd.Input)()
	a.Reached(fleet.PhaseExit)
	return s.outcome(ctx), nil
}

// leave ends a session that did not start. A server that does not agree to the end loses the
// connection.
func (s *session) leave() {
	defer time.AfterFunc(replyGrace, s.of.cut).Stop()
	_ = s.ch.Close()
	<-s.ch.Done()
}

// cut closes the connection, whatever it is doing.
func (c *Connection) cut() { _ = c.Close() }

// untilEnd waits for the end of the command, or ends it. stop waits for the running transmission,
// which the end of the channel ends, or that of a connection that accepts no more.
func (s *session) untilEnd(ctx context.Context, a fleet.Attempt, input fleet.Input) (stop func()) {
	over := make(chan struct{})
	var finisher sync.WaitGroup
	finisher.Add(1)
	polite := context.AfterFunc(ctx, func() {
		defer finisher.Done()
		s.finish(over, a.Abort())
	})
	stop = func() {}
	if input != nil {
		sent := feed(s.ch, input.Reader())
		stop = func() {
			defer time.AfterFunc(replyGrace, s.of.cut).Stop()
			sent()
		}
	}
	<-s.ch.Done()
	notify(s.of.Ended)
	close(over)
	if polite() {
		finisher.Done()
	}
	finisher.Wait()
	return stop
}

// notify calls f, if set.
func notify(f func()) {
	if f != nil {
		f()
	}
}

// outcome describes the end of a started command.
func (s *session) outcome(ctx context.Context) fleet.Outcome {
	o, lost := s.of.Result, ""
	o.Ran, o.Exit, o.Signal = fleet.RanYes, s.end.Exit, s.end.Signal
	if ctx.Err() == nil && !s.end.reported() {
		lost = s.of.Lost()
	}
	// If something still holds the session after the end of the command, it is another program that
	// runs there.
	o.Ended(ctx, s.end.reported() && !s.cut.Load(), lost)
	return o
}

// session is one command on one channel. It does not use ssh.Session, which costs four goroutines
// and two 32 KiB buffers a command.
type session struct {
	of  *Connection
	ch  *channel.Channel
	out func(fleet.Stream, []byte) error
	end ending
	cut atomic.Bool // the end of the session was not waited for
}

// open opens the channel. Nothing has run when it fails. Output is passed on from now on, even
// before the command is granted.
func (c *Connection) open(out func(fleet.Stream, []byte) error) (s *session, err error) {
	s = &session{of: c, out: out, end: ending{Exit: -1}}
	s.ch, err = c.Named.Open("session", nil, receiver{s})
	return s, err
}

// TerminalKind is the kind of a command's terminal: people are shown its lines, and no escape
// sequences.
const TerminalKind = "dumb"

// terminal requests one (RFC 4254 sections 6.2 and 8) of 80 columns and 24 lines that does not echo
// input and leaves the ends of lines as they are.
func terminal() []byte {
	p := channel.AppendNumber(channel.AppendNumber(channel.Text(TerminalKind), 80), 24)
	const modes = "\x35\x00\x00\x00\x00" + "\x48\x00\x00\x00\x00" + "\x00" // ECHO and ONLCR are off
	return channel.AppendText(append(p, make([]byte, 8)...), modes)
}

func (s *session) start(cmd fleet.Command) error {
	if cmd.Terminal {
		if granted, err := s.ch.SendRequest("pty-req", true, terminal()); err != nil || !granted {
			return cmp.Or(err, ErrNoTerminal)
		}
	}
	if err := grant(s.ch, line.Ask{Kind: line.Exec, Text: cmd.Line, Env: cmd.Env}); err != nil {
		return err
	}
	if cmd.Terminal {
		if _, err := s.ch.Write([]byte(fleet.EndOfInput)); err != nil {
			return err
		}
	}
	if cmd.Input == nil {
		s.ch.CloseWrite()
	}
	return nil
}

// receiver receives the messages of a session's channel.
type receiver struct{ *session }

var _ channel.Handler = receiver{}

// Data passes output on. An error ends the run, and until then the channel is drained.
func (r receiver) Data(stderr bool, data []byte) (took int) {
	stream := fleet.Stdout
	if stderr {
		stream = fleet.Stderr
	}
	r.out(stream, data)
	return len(data)
}

func (r receiver) Request(name string, payload []byte) { r.end.take(name, payload) }

func (receiver) EOF()    {}
func (receiver) Closed() {}
