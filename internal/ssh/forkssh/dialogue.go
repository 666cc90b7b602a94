package forkssh

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
)

// channel is ssh -s as a Dialogue sees it.
type channel struct {
	io.Reader
	io.WriteCloser
	attempt fleet.Attempt
	banner  func() string
}

var _ fleet.Channel = channel{}

// Output hands on what the Dialogue says.
func (c channel) Output(s fleet.Stream, data []byte) error { return c.attempt.Output(s, data) }

// Banner is the last line on standard error before the session began.
func (c channel) Banner() string { return c.banner() }

// Exec is not there: it would be another login.
func (c channel) Exec(context.Context, string, io.Reader) ([]byte, error) {
	return nil, fleet.ErrOneSession
}

// farewell is how long ssh may take to end by itself once a Dialogue is over: the host
// has to close the channel for that.
const farewell = time.Second

// conversation is how a Dialogue went.
type conversation struct {
	held  bool  // it began
	said  error // its own
	ended bool  // ssh, which did not do so by itself
}

// converse runs the binary and holds a Dialogue with it, once the subsystem is granted.
// The error is one of starting the binary.
func (e *Engine) converse(ctx context.Context, argv, env []string, talk fleet.Dialogue, l *log, to streams) (c *exec.Cmd, how conversation, err error) {
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
	ended := make(chan struct{})
	var watchers sync.WaitGroup
	watchers.Go(func() { err = wait(running, c, to); close(ended) })
	select {
	case <-l.granted:
	case <-ended:
		l.catchUp()
	}
	if how.held = l.isGranted(); how.held {
		notYet() // from now on it has some time to end by itself
		stop := sched.After(ctx, func() time.Duration { return fleet.DialogueGrace }, end)
		how.said = talk(ctx, to.attempt.Host(), channel{out, in, to.attempt, l.banner})
		stop()
		in.Close()
		watchers.Go(func() { _, _ = io.Copy(io.Discard, out) })
		defer time.AfterFunc(farewell, end).Stop()
	}
	<-ended
	how.ended = running.Err() != nil
	out.Close()
	watchers.Wait()
	return c, how, err
}

// conversed makes what a Dialogue says the outcome, unless it was not to be held, or ssh
// has lost the connection. o is what ssh says.
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
