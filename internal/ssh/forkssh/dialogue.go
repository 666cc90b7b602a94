package forkssh

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/session"
)

// process is ssh -s: a line with one session, for which it was started.
type process struct {
	pipes
	log    *log
	opened atomic.Bool
	end    context.CancelFunc
	ended  chan struct{}
}

var _ line.Line = (*process)(nil)

// Open waits until the server has granted the subsystem. Another session would be another login.
func (p *process) Open(context.Context, line.Ask) (line.Channel, error) {
	if p.opened.Swap(true) {
		return nil, fleet.ErrOneSession
	}
	select {
	case <-p.log.granted:
	case <-p.ended:
		p.log.catchUp()
	}
	if !p.log.isGranted() {
		return nil, io.EOF
	}
	return p.pipes, nil
}

// Done is closed when ssh has ended.
func (p *process) Done() <-chan struct{} { return p.ended }

// Close ends ssh, first by a signal that lets it go by itself.
func (p *process) Close() error {
	p.end()
	return nil
}

// banner waits for the end of ssh, which follows that of its output: by then all of its standard
// error is read.
func (p *process) banner() string {
	defer time.AfterFunc(farewell, p.end).Stop()
	<-p.ended
	return p.log.banner()
}

// pipes are ssh's input and output.
type pipes struct {
	io.Reader
	io.WriteCloser
}

// CloseWrite ends ssh's input.
func (p pipes) CloseWrite() error { return p.WriteCloser.Close() }

// Exit is unknown: ssh returns its own status.
func (pipes) Exit() int { return -1 }

// farewell is the time for ssh to end by itself once a Dialogue is over: the host has to close the
// channel for that.
const farewell = time.Second

// conversation is the result of a Dialogue.
type conversation struct {
	held  bool  // it began
	said  error // its own
	ended bool  // ssh, which did not do so by itself
}

// converse runs the binary and holds a Dialogue with it, once the subsystem is granted. The error
// is one of starting the binary.
func (e *Engine) converse(ctx context.Context, argv, env []string, cmd fleet.Command, l *log, to streams) (c *exec.Cmd, how conversation, err error) {
	c = e.command(argv, env, to)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, how, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, how, err
	}
	defer out.Close()
	c.Stdout = theirs
	err = c.Start()
	theirs.Close()
	if err != nil {
		return nil, how, err
	}
	running, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(to.attempt.Abort(), end)()
	notYet := context.AfterFunc(ctx, end)
	p := &process{pipes: pipes{out, in}, log: l, end: end, ended: make(chan struct{})}
	var watchers sync.WaitGroup
	watchers.Go(func() { err = wait(running, c, to); close(p.ended) })
	if ch, notGranted := p.Open(ctx, line.Ask{Kind: line.Subsystem, Text: cmd.Line}); notGranted == nil {
		how.held = true
		notYet() // from now on it has some time to end by itself
		how.said = session.Converse(ctx, p, ch, cmd, to.attempt, p.banner)
		ch.Close()
		watchers.Go(func() { _, _ = io.Copy(io.Discard, out) })
		defer time.AfterFunc(farewell, end).Stop()
	}
	<-p.ended
	how.ended = running.Err() != nil
	out.Close()
	watchers.Wait()
	return c, how, err
}

// conversed makes the error of a Dialogue the outcome, unless it was not to be held, or ssh has
// lost the connection. o is ssh's outcome.
func conversed(ctx context.Context, o fleet.Outcome, how conversation) fleet.Outcome {
	switch {
	case !how.held:
		return o
	case ctx.Err() == nil && how.said != nil && !how.ended && o.Class != fleet.NoFailure:
		o.Ran = fleet.RanYes
		return o
	}
	o = fleet.Outcome{Engine: engineName, Addr: o.Addr, Ran: fleet.RanYes}
	o.Conversed(ctx, how.said, "")
	return o
}
