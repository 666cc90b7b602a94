package dial

import (
	"context"
	"io"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/transport"
)

// Seen records one login.
type Seen struct {
	At        [transport.Steps]time.Time // when each step was done; zero: it was not
	Name      time.Duration              // the look-up of the name; 0: there was none
	Vain      time.Duration              // offering keys that the server refused
	RoundTrip time.Duration              // 0: unknown
	Via       []string                   // jump hosts, the first one first
	Greeting  transport.Greeting
	Theirs    transport.KexInit
	Got       ssh.NegotiatedAlgorithms
	// Ask returns a script for the host's sh, after the command; "" for none. Hear reads its
	// output.
	Ask  func() string
	Hear func(io.Reader)
}

// Watch runs cmd on h as Execute does, but one step after the other and nothing ahead, so that each
// wait has one cause, and fills in seen.
func (e *Engine) Watch(ctx context.Context, t *Target, cmd fleet.Command, a fleet.Attempt, seen *Seen) fleet.Outcome {
	for j := t.Jump; j != nil; j = j.Jump {
		seen.Via = append([]string{j.HostName}, seen.Via...)
	}
	return e.Run(ctx, t, cmd, &watched{a, seen})
}

// watched is an attempt that somebody watches.
type watched struct {
	fleet.Attempt
	seen *Seen
}

// seenBy returns the record of a login, nil if nobody watches it.
func seenBy(p Progress) *Seen {
	if w, is := p.(*watched); is {
		return w.seen
	}
	return nil
}

// stepper returns a function that reports the steps of a login.
func (e *Engine) stepper(p Progress) func(transport.Step) {
	seen := seenBy(p)
	return func(s transport.Step) {
		if seen != nil {
			seen.step(s)
		}
		if e.opts.Step != nil {
			e.opts.Step(s)
		}
	}
}

// step records the time of a step. A server lists the methods that can continue more than once:
// after each key that it refuses.
func (s *Seen) step(done transport.Step) {
	now, at := time.Now(), &s.At[done]
	if done == transport.StepMethods && !at.IsZero() {
		s.Vain += now.Sub(*at)
	}
	*at = now
}

func (s *Seen) named(took time.Duration) {
	if s != nil {
		s.Name = took
	}
}

// handshake records the server's part of the login so far.
func (s *Seen) handshake(c *transport.Conn, away time.Duration) {
	if s != nil && c != nil {
		s.RoundTrip, s.Greeting, s.Theirs, s.Got = away, *c.Greeting(), *c.Theirs(), c.Negotiated()
	}
}

// askLimit is the time for a host to answer a script.
const askLimit = 20 * time.Second

// ask runs the script on the connection of the login.
func (s *Seen) ask(ctx context.Context, l line.Line) {
	script := s.Ask()
	if script == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	shell, err := l.Open(ctx, line.Ask{Kind: line.Exec, Text: "exec sh"})
	if err != nil {
		return
	}
	defer context.AfterFunc(ctx, func() { shell.Close() })()
	defer shell.Close()
	if _, err := io.WriteString(shell, script); err == nil && shell.CloseWrite() == nil {
		s.Hear(shell)
	}
}
