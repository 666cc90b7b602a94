package mux

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
)

// engineName is what results say.
const engineName = "master"

// Session is a command to run over a master.
type Session struct {
	Path    string // of the socket
	Command fleet.Command
	Env     []string // NAME=value, asked of the server without waiting
	// Timeout bounds all up to the start of the command; 0 is fleet.ConnectTimeout.
	Timeout time.Duration
}

// Run runs the command. An error means that nothing has run: os.ErrNotExist
// without a socket, else an *Error.
func (s *Session) Run(ctx context.Context, a *fleet.Attempt) (fleet.Outcome, error) {
	starting, cancel := context.WithTimeoutCause(ctx, cmp.Or(max(s.Timeout, 0), fleet.ConnectTimeout), fleet.ErrConnectTimeout)
	defer cancel()
	l, err := dial(starting, s.Path)
	if err != nil {
		return fleet.Outcome{}, err
	}
	r := &running{session: s, attempt: a, link: l, end: channel.End{Exit: -1}}
	conn := channel.New(carrier{l}, nil, 0)
	defer conn.Wait() // what is told is told before Run returns
	defer l.conn.Close()
	abort := context.AfterFunc(a.Abort(), func() { l.conn.Close() })
	defer abort()
	if s.Command.Dialogue != nil {
		o, err := r.converse(ctx, starting, conn)
		if err != nil {
			l.conn.Close()
			err = s.survived(err)
		}
		return o, err
	}
	if err := r.open(starting, conn); err != nil {
		l.conn.Close()
		return fleet.Outcome{}, s.survived(err)
	}
	a.Reached(fleet.PhaseExec)
	if o, started := r.start(starting); !started {
		return o, nil
	}
	r.finish(ctx)
	return r.outcome(ctx), nil
}

// running is a session; as a channel's handler it is told what the server sends.
type running struct {
	session *Session
	attempt *fleet.Attempt
	link    *link
	channel *channel.Channel

	// What follows is known when the channel has ended.
	lost string
	end  channel.End
}

// Data hands on output; an error ends the run, and until then the channel is
// drained.
func (r *running) Data(stderr bool, data []byte) (took int) {
	stream := fleet.Stdout
	if stderr {
		stream = fleet.Stderr
	}
	r.attempt.Output(stream, data)
	return len(data)
}

// EOF says nothing: the exit status is still to come.
func (*running) EOF() {}

// Closed notes whether the channel ended with the connection.
func (r *running) Closed() { r.lost = r.link.loss() }

// Request notes how the command ended.
func (r *running) Request(name string, payload []byte) { r.end.Take(name, payload) }

// open opens the session.
func (r *running) open(ctx context.Context, conn *channel.Conn) (err error) {
	stop := context.AfterFunc(ctx, func() { r.link.conn.Close() })
	r.channel, err = conn.Open("session", nil, r)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		return r.unopened(err)
	}
	return nil
}

// unopened says why there is no session.
func (r *running) unopened(err error) error {
	no, isRefused := errors.AsType[*ssh.OpenChannelError](err)
	switch path := r.session.Path; {
	case errors.Is(err, errNoSubsystem):
		return &Error{path, err.Error(), err}
	case errors.Is(err, fleet.ErrConnectTimeout):
		return &Error{path, "opened no session in time: its connection may be dead", err}
	case isRefused:
		return &Error{path, "got no further session: " + cmp.Or(no.Message, no.Reason.String()) + " (MaxSessions on the server?)", err}
	case errors.Is(err, io.EOF):
		return &Error{path, "closed the connection", err}
	default:
		return &Error{path, "is unusable: " + reason(err), err}
	}
}

// survived adds to a refusal by the server that the master has ended over it, where it
// has: OpenSSH's does not forget a channel that was refused to a client in proxy mode,
// and fails when that leaves (channels.c, channel_proxy_upstream; chan_send_close2).
func (s *Session) survived(err error) error {
	own := (*Error)(nil)
	if _, refused := errors.AsType[*ssh.OpenChannelError](err); !refused || !errors.As(err, &own) {
		return err
	}
	const looks, pause = 15, 10 * time.Millisecond
	for range looks {
		conn, err := net.Dial("unix", s.Path)
		if err != nil {
			own.Text += "; OpenSSH's master has ended over that, and its sessions with it"
			break
		}
		conn.Close()
		time.Sleep(pause)
	}
	return own
}

// start requests the command and waits for the answer; without one the outcome
// says why.
func (r *running) start(ctx context.Context) (o fleet.Outcome, started bool) {
	o = fleet.Outcome{Engine: engineName, Addr: r.session.Path, Exit: -1}
	answered := sched.After(ctx, func() time.Duration { return fleet.AnswerGrace(ctx) }, func() { r.link.conn.Close() })
	ok, err := channel.Start(r.channel, "exec", r.session.Command.Line, r.session.Env)
	if !answered() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		r.link.conn.Close()
		<-r.channel.Done()
	}
	switch {
	case err == nil && ok, err != nil && r.end.Told():
		return o, true
	case err == nil:
		o.Class, o.Err = fleet.ExecRefused, "the server refused to run the command"
	case ctx.Err() != nil:
		o.Ran = fleet.RanUnknown
		o.Class, o.Err = fleet.Stopped(context.Cause(ctx))
		if errors.Is(context.Cause(ctx), fleet.ErrConnectTimeout) {
			o.Class, o.Err = fleet.TimedOut, "the server did not answer the request to run the command in time"
		}
		o.Err += "; it may run there"
	default:
		o.Class, o.Err, o.Ran = fleet.Lost, "connection lost before the command started", fleet.RanUnknown
	}
	return o, false
}

// finish waits for the end of the command. When ctx ends it is sent TERM, after
// a while KILL, and then the channel is closed. There is no second session for
// what refuses signals: it would end the other sessions of the master.
func (r *running) finish(ctx context.Context) {
	stopInput := r.feed()
	defer stopInput()
	defer r.link.conn.Close() // which ends what is being sent
	select {
	case <-r.channel.Done():
		return
	case <-ctx.Done():
	}
	for _, step := range []struct {
		signal string
		grace  time.Duration
	}{{"TERM", fleet.TermGrace}, {"KILL", fleet.KillGrace}} {
		go r.channel.SendRequest("signal", false, channel.Text(step.signal)) // waits as long as the master reads nothing
		if r.endsWithin(step.grace) {
			return
		}
	}
	r.link.conn.Close() // without a farewell, which a master that reads nothing would hold up
	<-r.channel.Done()
}

func (r *running) endsWithin(grace time.Duration) bool {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-r.channel.Done():
		return true
	case <-r.attempt.Abort().Done():
	case <-t.C:
	}
	return false
}

// feed sends the input, if there is one, and its end.
func (r *running) feed() (stop func()) {
	if r.session.Command.Input == nil {
		r.channel.CloseWrite()
		return func() {}
	}
	return channel.Feed(r.channel, r.session.Command.Input.Reader())
}

// outcome says how the command ended.
func (r *running) outcome(ctx context.Context) fleet.Outcome {
	r.attempt.Reached(fleet.PhaseExit)
	o := fleet.Outcome{Engine: engineName, Addr: r.session.Path, Ran: fleet.RanYes, Exit: r.end.Exit, Signal: r.end.Signal}
	o.Ended(ctx, r.end.Told(), r.lost)
	return o
}
