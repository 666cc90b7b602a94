package mux

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
)

// engineName is what results say.
const engineName = "master"

// Session is a command to run over a master.
type Session struct {
	Path    string // of the socket
	Command fleet.Command
	Env     []string // NAME=value, asked of the server without waiting
	// Timeout bounds all up to the start of the command; 0 is 15 s.
	Timeout time.Duration
}

var errConnectTimeout = errors.New("connect timeout")

// Run runs the command. An error means that nothing has run: os.ErrNotExist
// without a socket, else an *Error.
func (s *Session) Run(ctx context.Context, a *fleet.Attempt) (fleet.Outcome, error) {
	limit := s.Timeout
	if limit <= 0 {
		limit = 15 * time.Second
	}
	starting, cancel := context.WithTimeoutCause(ctx, limit, errConnectTimeout)
	defer cancel()
	l, err := dial(starting, s.Path)
	if err != nil {
		return fleet.Outcome{}, err
	}
	defer l.conn.Close()
	r := &running{session: s, attempt: a, exit: -1}
	r.channel, err = l.open("session", nil, r)
	if err != nil {
		return fleet.Outcome{}, &Error{s.Path, "is unusable: " + reason(err), err}
	}
	abort := context.AfterFunc(a.Abort(), func() { l.conn.Close() })
	defer abort()
	if err := r.await(starting); err != nil {
		l.conn.Close()
		<-r.channel.ended
		return fleet.Outcome{}, err
	}
	a.Reached(fleet.PhaseExec)
	if o, started := r.start(starting); !started {
		l.conn.Close()
		<-r.channel.ended
		return o, nil
	}
	r.finish(ctx)
	l.conn.Close()
	return r.outcome(ctx), nil
}

// running is a session; as a handler it is told what the server sends.
type running struct {
	session *Session
	attempt *fleet.Attempt
	channel *channel

	exit   int // -1: none told
	signal string
}

func (r *running) data(extended bool, data []byte) {
	stream := fleet.Stdout
	if extended {
		stream = fleet.Stderr
	}
	r.attempt.Output(stream, data) // an error ends the run; until then the channel is drained
	r.channel.took(len(data))
}

func (r *running) eof() {}

// request notes exit-status and exit-signal (RFC 4254 section 6.10).
func (r *running) request(name string, payload []byte) {
	switch name {
	case "exit-status":
		var m struct{ Status uint32 }
		if ssh.Unmarshal(payload, &m) == nil {
			r.exit = int(m.Status)
		}
	case "exit-signal":
		var m struct {
			Signal string
			Rest   []byte `ssh:"rest"`
		}
		if ssh.Unmarshal(payload, &m) == nil {
			r.signal = termsafe.Line(m.Signal[:min(len(m.Signal), 20)])
		}
	}
}

// await waits until the server has opened the channel.
func (r *running) await(ctx context.Context) error {
	path := r.session.Path
	var err error
	select {
	case err = <-r.channel.opened:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	no := (*refused)(nil)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errConnectTimeout):
		return &Error{path, "opened no session in time: its connection may be dead", err}
	case errors.As(err, &no):
		return &Error{path, "got no further session: " + strings.TrimPrefix(no.Error(), "the server refused the session: ") + " (MaxSessions on the server?)", err}
	case errors.Is(err, io.EOF):
		return &Error{path, "closed the connection", err}
	}
	return &Error{path, "is unusable: " + reason(err), err}
}

// start requests the command and waits for the answer; without one the outcome
// says why.
func (r *running) start(ctx context.Context) (o fleet.Outcome, started bool) {
	c := r.channel
	for _, kv := range r.session.Env {
		name, value, _ := strings.Cut(kv, "=")
		c.ask("env", false, struct{ Name, Value string }{name, value}) // errors show below
	}
	o = fleet.Outcome{Engine: engineName, Addr: r.session.Path, Exit: -1}
	err := c.ask("exec", true, struct{ Command string }{r.session.Command.Line})
	if err == nil && r.session.Command.Input == nil {
		err = c.CloseWrite()
	}
	if err != nil {
		o.Class, o.Err, o.Ran = fleet.Lost, "connection lost before the command started", fleet.RanUnknown
		return o, false
	}
	select {
	case ok := <-c.replies:
		if ok {
			return o, true
		}
		o.Class, o.Err = fleet.ExecRefused, "the server refused to run the command"
	case <-c.ended:
		if r.exit >= 0 || r.signal != "" {
			return o, true
		}
		o.Class, o.Err, o.Ran = fleet.Lost, "connection lost before the command started", fleet.RanUnknown
	case <-ctx.Done():
		o.Ran = fleet.RanUnknown
		o.Class, o.Err = fleet.Stopped(context.Cause(ctx))
		if errors.Is(context.Cause(ctx), errConnectTimeout) {
			o.Class, o.Err = fleet.TimedOut, "the server did not answer the request to run the command in time"
		}
		o.Err += "; it may run there"
	}
	return o, false
}

// Grace periods when a command is ended.
const (
	termGrace = 2 * time.Second // between TERM and KILL
	killGrace = time.Second     // between KILL and closing the channel
)

// finish waits for the end of the command. When ctx ends it is sent TERM, after
// a while KILL, and then the channel is closed. There is no second session for
// what refuses signals: it would end the other sessions of the master.
func (r *running) finish(ctx context.Context) {
	c := r.channel
	stopInput := r.feed()
	defer stopInput()
	select {
	case <-c.ended:
		return
	case <-ctx.Done():
	}
	for _, step := range []struct {
		signal string
		grace  time.Duration
	}{{"TERM", termGrace}, {"KILL", killGrace}} {
		c.ask("signal", false, struct{ Name string }{step.signal}) // a lost link shows as the end
		if r.endsWithin(step.grace) {
			return
		}
	}
	c.link.sendPacket(closeMsg{c.peer}, nil)
	c.link.conn.Close()
	<-c.ended
}

func (r *running) endsWithin(grace time.Duration) bool {
	t := time.NewTimer(grace)
	defer t.Stop()
	select {
	case <-r.channel.ended:
		return true
	case <-r.attempt.Abort().Done():
	case <-t.C:
	}
	return false
}

// feed sends the input, if there is one.
func (r *running) feed() (stop func()) {
	if r.session.Command.Input == nil {
		return func() {}
	}
	in := r.session.Command.Input.Reader()
	done := make(chan struct{})
	go func() {
		defer close(done)
		io.Copy(struct{ io.Writer }{r.channel}, struct{ io.Reader }{in})
		r.channel.CloseWrite()
	}()
	return func() { in.Close(); <-done }
}

// outcome says how the command ended.
func (r *running) outcome(ctx context.Context) fleet.Outcome {
	r.attempt.Reached(fleet.PhaseExit)
	o := fleet.Outcome{Engine: engineName, Addr: r.session.Path, Ran: fleet.RanYes, Exit: r.exit, Signal: r.signal}
	told := r.exit >= 0 || r.signal != ""
	switch {
	case ctx.Err() != nil:
		o.Class, o.Err = fleet.Stopped(context.Cause(ctx))
		if !told {
			o.Err += "; it may still run there"
		}
	case told:
	case errors.Is(r.channel.end, errClosed):
		o.Untold()
	default:
		o.LostRunning()
	}
	return o
}
