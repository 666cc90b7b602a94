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
	attempt fleet.Attempt
}

var _ fleet.Channel = conversation{}

// converse holds a Dialogue with the subsystem that was started.
func (s *session) converse(ctx context.Context, talk fleet.Dialogue, a fleet.Attempt) fleet.Outcome {
	a.Reached(fleet.PhaseExec)
	stderr := &gatedOutput{out: s.out}
	go io.CopyBuffer(stderr, s.in.Stderr(), make([]byte, idleBuffer))
	defer sched.After(ctx, func() time.Duration { return fleet.DialogueGrace }, s.of.Cut)()
	err := talk(ctx, a.Host(), conversation{s, a})
	stderr.close()
	a.Reached(fleet.PhaseExit)
	o, lost := s.of.Result, ""
	o.Ran = fleet.RanYes
	if ctx.Err() == nil && err != nil {
		lost = s.of.Lost()
	}
	o.Conversed(ctx, err, lost)
	return o
}

// idleBuffer is for waiting for what is said on standard error, which mostly is nothing.
const idleBuffer = 512

// gatedOutput hands on standard error until it is closed: what a server says there once all
// is done is nobody's any more. What nobody wants is dropped, so that the channel can end.
type gatedOutput struct {
	mu     sync.Mutex
	out    func(fleet.Stream, []byte) error
	closed bool
}

func (g *gatedOutput) Write(data []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.out(fleet.Stderr, data)
	}
	return len(data), nil
}

func (g *gatedOutput) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

func (c conversation) Read(p []byte) (int, error) { return c.in.Read(p) }

func (c conversation) Write(p []byte) (int, error) { return c.ch.Write(p) }

func (c conversation) Close() error { return c.ch.Close() }

// Output hands on what the Dialogue says.
func (c conversation) Output(s fleet.Stream, data []byte) error { return c.attempt.Output(s, data) }

// Banner is the last line of the connection's.
func (c conversation) Banner() string { return c.of.Banner }

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
