package forkssh

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/proc"
)

// channel is ssh -s as a Dialogue sees it.
type channel struct {
	io.Reader
	io.WriteCloser
	attempt *fleet.Attempt
}

var _ fleet.Channel = channel{}

// Output hands on what the Dialogue says.
func (c channel) Output(s fleet.Stream, data []byte) error { return c.attempt.Output(s, data) }

// Exec is not there: it would be another login.
func (c channel) Exec(context.Context, string, io.Reader) ([]byte, error) {
	return nil, fleet.ErrNoExec
}

// converse runs the binary and holds a Dialogue with it. said is the Dialogue's
// error, err one of starting the binary.
func (e *Engine) converse(ctx context.Context, argv, env []string, talk fleet.Dialogue, to streams) (c *exec.Cmd, said, err error) {
	c = exec.Command(e.opts.Binary, argv...)
	c.Env = append(os.Environ(), env...)
	proc.Lead(c)
	c.Stderr = sink{to, fleet.Stderr}
	c.WaitDelay = strayGrace
	in, err := c.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	if err := c.Start(); err != nil {
		return nil, nil, err
	}
	ended := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() { kill(ctx, to.attempt.Abort(), c.Process.Pid, ended) })
	said = talk(ctx, to.attempt.Host(), channel{out, in, to.attempt})
	in.Close()
	io.Copy(io.Discard, out)
	err = proc.Wait(c)
	close(ended)
	killer.Wait()
	if _, isExit := errors.AsType[*exec.ExitError](err); err != nil && !isExit && !errors.Is(err, exec.ErrWaitDelay) {
		return nil, said, err
	}
	return c, said, nil
}

// blame makes the error of a Dialogue the failure of a host that has none of
// its own.
func blame(o fleet.Outcome, said error) fleet.Outcome {
	if said != nil && o.Class == fleet.NoFailure {
		o.Exit, o.Err = 1, termsafe.Line(said.Error())
	}
	return o
}
