// Package session runs one command, or holds one Dialogue, on a connection that has
// channels (RFC 4254 section 6), whoever has made it: it asks for the command, feeds it, hands
// on what it writes, ends it when the run does, and says whether it may have run. How
// connections are made it does not know.
package session

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/openssh"
)

// Connection is one that is logged in. Run ends it.
type Connection struct {
	*channel.Named
	Cut     func()        // ends it at once, whatever it is doing
	Result  fleet.Outcome // what is known of the connection: engine and address
	Asked   bool          // the command has left already, see transport
	MayKill bool          // a second session may end what refuses signals
	Banner  string        // the last line of what the server sent for people to read
	// Lost says of a connection that has ended how it did, "" while it goes on.
	Lost func() string
	// Exec, where set, runs a second command in place of a second session.
	Exec func(ctx context.Context, line string, input io.Reader) ([]byte, error)
	// Began and Ended are called when the command was granted, and is over; may be nil.
	Began, Ended func()
}

// NotStarted is a session that did not come to run.
type NotStarted struct {
	// Outcome says it to people. Ran is RanUnknown where the command has left, and nothing shows
	// that it does not run.
	Outcome fleet.Outcome
	// Err is ErrRefused, ErrNoSubsystem, an *ssh.OpenChannelError, or the end of the
	// connection.
	Err  error
	Late error // why the time for it was over by then, nil if it was not
}

func (e *NotStarted) Error() string { return e.Err.Error() }

func (e *NotStarted) Unwrap() error { return e.Err }

// What a server refuses.
var (
	ErrRefused     = errors.New("the server refused to run the command")
	ErrNoSubsystem = errors.New("the server has no SFTP for this user (Subsystem in its sshd_config)")
)

// notStarted tells whether the command may run although a session did not come to run: it
// does not where it never left, or where the server has refused it.
func (c *Connection) notStarted(starting context.Context, err error) *NotStarted {
	e := &NotStarted{Outcome: c.Result, Err: err, Late: context.Cause(starting)}
	o := &e.Outcome
	o.Ran, o.Exit, o.Cause = fleet.RanUnknown, -1, e
	unopened, isUnopened := errors.AsType[*ssh.OpenChannelError](err)
	refused := errors.Is(err, ErrRefused) || errors.Is(err, ErrNoSubsystem)
	if !c.Asked || isUnopened || refused {
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

// Run runs a command, which must have been granted when starting ends. The error is a
// *NotStarted.
func (c *Connection) Run(ctx, starting context.Context, cmd fleet.Command, a fleet.Attempt) (fleet.Outcome, error) {
	stopInput := func() {}
	defer func() { stopInput() }() // when the connection has ended, and what is being sent with it
	defer func() { <-c.Done() }()
	defer c.Close()

	abort := context.AfterFunc(a.Abort(), c.Cut)
	defer abort()
	begun := sched.After(starting, func() time.Duration { return fleet.AnswerGrace(starting) }, c.Cut)
	defer begun()

	s, err := c.open(a.Output, cmd.Dialogue != nil)
	if err == nil && !c.Asked { // then nothing is asked for any more
		err = context.Cause(ctx)
	}
	if err != nil {
		return fleet.Outcome{}, c.notStarted(starting, err)
	}
	c.Asked = true
	if cmd.Dialogue != nil {
		err := s.subsystem(cmd.Line, cmd.Env)
		if err != nil || !begun() {
			return fleet.Outcome{}, c.notStarted(starting, cmp.Or(err, context.Cause(starting)))
		}
		return s.converse(ctx, cmd.Dialogue, a), nil
	}
	a.Reached(fleet.PhaseExec)
	err = s.start(cmd.Line, cmd.Env, cmd.Input == nil)
	if !begun() && err == nil {
		err = context.Cause(starting)
	}
	if err != nil {
		failed := c.notStarted(starting, err)
		c.Cut()
		if <-s.ended; failed.Outcome.Ran == fleet.RanNo || !s.end.told() {
			return fleet.Outcome{}, failed
		}
		a.Reached(fleet.PhaseExit)
		return s.outcome(ctx), nil
	}
	told(c.Began)
	stopInput = s.untilEnd(ctx, a, cmd.Input)
	a.Reached(fleet.PhaseExit)
	return s.outcome(ctx), nil
}

// untilEnd waits for the end of the command, or brings it about. stop waits for what is
// being sent, which the end of the connection ends.
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
		stop = feed(s.ch, input.Reader())
	}
	<-s.ended
	told(s.of.Ended)
	close(over)
	if polite() {
		finisher.Done()
	}
	finisher.Wait()
	return stop
}

// told calls who wants to know.
func told(f func()) {
	if f != nil {
		f()
	}
}

// outcome says how a command that was started ended.
func (s *session) outcome(ctx context.Context) fleet.Outcome {
	o, lost := s.of.Result, ""
	o.Ran, o.Exit, o.Signal = fleet.RanYes, s.end.Exit, s.end.Signal
	if ctx.Err() == nil && !s.end.told() {
		lost = s.of.Lost()
	}
	// What still holds the session when the end of the command was told is something else that runs there.
	o.Ended(ctx, s.end.told() && !s.cut.Load(), lost)
	return o
}

// session is one command on one channel. It does not use ssh.Session, which
// costs four goroutines and two 32 KiB buffers a command.
type session struct {
	of  *Connection
	ch  sender
	out func(fleet.Stream, []byte) error
	end ending
	cut atomic.Bool // the end of the session was not waited for

	in    ssh.Channel     // to be read; nil where what comes is handed over
	ended <-chan struct{} // closed when all of that was
}

// open opens the channel. Nothing has run when it fails. A channel that is not to
// be read hands over what comes from now on, even before a command is granted.
func (c *Connection) open(out func(fleet.Stream, []byte) error, read bool) (*session, error) {
	s := &session{of: c, out: out, end: ending{Exit: -1}}
	if !read {
		ch, err := c.Named.Open("session", nil, receiver{s})
		if err != nil {
			return nil, err
		}
		s.ch, s.ended = ch, ch.Done()
		return s, nil
	}
	ch, reqs, err := c.OpenChannel("session", nil)
	if err != nil {
		return nil, err
	}
	s.ch, s.in = ch, ch
	go ssh.DiscardRequests(reqs)
	return s, nil
}

// start requests the command; eof says that it gets no input.
func (s *session) start(line string, env []string, eof bool) error {
	ok, err := request(s.ch, "exec", line, env)
	switch {
	case err != nil:
		return err
	case !ok:
		return ErrRefused
	}
	if eof {
		s.ch.CloseWrite()
	}
	return nil
}

// subsystem requests a subsystem (RFC 4254 section 6.5).
func (s *session) subsystem(name string, env []string) error {
	ok, err := request(s.ch, "subsystem", name, env)
	if err == nil && !ok {
		err = ErrNoSubsystem
	}
	return err
}

// receiver is told what comes on a session's channel.
type receiver struct{ *session }

var _ channel.Handler = receiver{}

// Data hands output on. An error ends the run, and until then the channel is drained.
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
