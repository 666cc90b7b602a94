package session

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
)

// conversation is the session as a Dialogue sees it.
type conversation struct {
	*session
	attempt *fleet.Attempt
}

var _ fleet.Channel = conversation{}

// converse holds a Dialogue with the subsystem that was started.
func (s *session) converse(ctx context.Context, talk fleet.Dialogue, a *fleet.Attempt) fleet.Outcome {
	a.Reached(fleet.PhaseExec)
	out := &gatedOutput{out: s.out}
	s.out = out.write
	go s.pump(s.in.Stderr(), fleet.Stderr)
	defer sched.After(ctx, func() time.Duration { return fleet.DialogueGrace }, s.of.Cut)()
	err := talk(ctx, a.Host(), conversation{s, a})
	out.close()
	a.Reached(fleet.PhaseExit)
	o, lost := s.of.Result, ""
	o.Ran = fleet.RanYes
	if ctx.Err() == nil && err != nil {
		lost = s.of.Lost()
	}
	o.Conversed(ctx, err, lost)
	return o
}

// gatedOutput hands on output until it is closed: what a server says on standard
// error once all is done is nobody's any more.
type gatedOutput struct {
	mu     sync.Mutex
	out    func(fleet.Stream, []byte) error
	closed bool
}

func (g *gatedOutput) write(s fleet.Stream, data []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	return g.out(s, data)
}

func (g *gatedOutput) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// Read reads what the subsystem says, and keeps the account that holds a fast
// server up.
func (c conversation) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.of.Flow.begin(n, n < len(p))
	c.of.Flow.end()
	return n, err
}

func (c conversation) Write(p []byte) (int, error) { return c.ch.Write(p) }

func (c conversation) Close() error { return c.ch.Close() }

// Output hands on what the Dialogue says.
func (c conversation) Output(s fleet.Stream, data []byte) error { return c.attempt.Output(s, data) }

// Exec runs a command in a second session.
func (c conversation) Exec(ctx context.Context, line string, input io.Reader) ([]byte, error) {
	if c.of.Exec != nil {
		return c.of.Exec(ctx, line, input)
	}
	var out bytes.Buffer
	s, err := c.of.open(func(stream fleet.Stream, data []byte) error {
		if stream == fleet.Stdout {
			out.Write(data[:min(len(data), fleet.MaxExec+1-out.Len())])
		}
		return nil
	}, false)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", fleet.ErrNoExec, err)
	}
	defer s.ch.Close()
	defer context.AfterFunc(ctx, func() { s.ch.Close() })()
	if err := s.start(line, nil, false); err != nil {
		return nil, fmt.Errorf("%w: %w", fleet.ErrNoExec, err)
	}
	sent := feed(s.ch, io.NopCloser(input))
	<-s.ended
	sent()
	return fleet.Executed(ctx, out.Bytes(), s.end.Exit)
}
