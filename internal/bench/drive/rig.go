//go:build linux

// Package drive carries out trials with real processes: an SSH client, the flows at either end, and
// clocks on all of them. Private drives the server of this run on loopback, Remote a user's host.
package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/bed"
	"sshpace/internal/bench/loopback"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// Rig holds the needs of both drivers.
type Rig struct {
	bed.Bed
	loopback.Site
	Data string // "zero" or "random"

	serial int
}

// file names a new file of this trial.
func (r *Rig) file(kind string) string {
	r.serial++
	return r.Dir.File(kind + "." + strconv.Itoa(r.serial))
}

// client is a running SSH client process.
type client struct {
	*openssh.Running
	offer alg.Suite // the only names that it may negotiate
}

// startClient starts argv, which offers the names of offer.
func (r *Rig) startClient(argv, env []string, offer alg.Suite, log string, stdin, stdout *os.File) (*client, error) {
	running, err := openssh.Start(argv, env, log, stdin, stdout, r.Spawner.Start)
	if err != nil {
		return nil, err
	}
	return &client{running, offer}, nil
}

// linger gives a client whose output ended a moment to report the reason.
func (c *client) linger(why error) {
	if errors.Is(why, openssh.ErrEnded) {
		c.Linger()
	}
}

// converse starts a client, and runs body on its output, for limit at most. After that the client
// has ended; bodyErr is the error of body, or of the end of ctx.
func (r *Rig) converse(ctx context.Context, limit time.Duration, start func(stdout *os.File) (*client, error),
	body func(c *client, out *os.File) error) (c *client, s record.Sample, bodyErr, err error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, s, nil, err
	}
	defer read.Close()
	c, err = start(write)
	write.Close()
	if err != nil {
		return nil, s, nil, err
	}
	s.Start = c.Began
	_ = read.SetReadDeadline(time.Now().Add(limit))
	stop := context.AfterFunc(ctx, c.Cut)
	bodyErr = body(c, read)
	stop()
	c.linger(bodyErr)
	c.Kill()
	if ctx.Err() != nil {
		bodyErr = context.Canceled
	}
	return c, s, bodyErr, nil
}

// timed times one login, until a command that does nothing has reported its start.
func (r *Rig) timed(ctx context.Context, limit time.Duration, start func(command string, out *os.File) (*client, error)) (c *client, s record.Sample, ready time.Duration, bodyErr, err error) {
	mark := openssh.NewMark()
	c, s, bodyErr, err = r.converse(ctx, limit, func(out *os.File) (*client, error) { return start("echo "+mark, out) }, func(c *client, out *os.File) error {
		if _, err := openssh.AwaitMark(out, mark); err != nil {
			return err
		}
		ready = time.Since(c.Began)
		return c.awaitEnd(r.Connect)
	})
	return c, s, ready, bodyErr, err
}

// failure is the reason of a trial's early end.
type failure struct {
	outcome record.Outcome
	detail  string
}

func (f *failure) Error() string { return string(f.outcome) + ": " + f.detail }

// finish turns the observations of a trial into its sample. err nil means that the harness saw no
// error.
func (c *client) finish(s *record.Sample, err error) (openssh.Negotiation, openssh.Failed) {
	n, flooded := c.Negotiation()
	if flooded != nil && !errors.Is(err, context.Canceled) {
		err = &failure{record.Broken, flooded.Error()}
	}
	return n, c.judge(s, n, err)
}

// judge fills in the negotiated suite and the outcome.
func (c *client) judge(s *record.Sample, n openssh.Negotiation, err error) openssh.Failed {
	s.ElapsedNS = time.Since(c.Began)
	s.Got, s.Rekeys = n.Got, n.Rekeys
	if s.Got.Cipher != "" && s.Got.Kex == "" {
		s.Got.Kex = c.offer.Kex // an ssh up to 7.0 does not name it, but had no choice
	}
	if reverse := n.Reverse; err == nil && (reverse.Cipher != n.Got.Cipher || reverse.MAC != n.Got.MAC) {
		err = &failure{record.Mismatched, fmt.Sprintf("the two directions differ: %s and %s", n.Got.Bulk(), reverse)}
	}
	if err == nil && n.Multiplex {
		err = &failure{record.Mismatched, "the connection went through a ControlMaster"}
	}
	why := c.why(n, err)
	s.Outcome, s.Detail = why.Outcome, why.Said
	return why
}

// why describes the end of a trial.
func (c *client) why(n openssh.Negotiation, err error) openssh.Failed {
	var known *failure
	switch {
	case err == nil:
		return openssh.Failed{Outcome: record.OK}
	case errors.As(err, &known):
		return openssh.Failed{Outcome: known.outcome, Said: known.detail}
	case errors.Is(err, openssh.ErrEndless):
		return openssh.Failed{Outcome: record.Broken, Said: err.Error()}
	case errors.Is(err, context.Canceled):
		return openssh.Failed{Outcome: record.Aborted, Said: "stopped by the user"}
	case errors.Is(err, openssh.ErrStalled), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return openssh.Failed{Outcome: record.TimedOut, Said: err.Error()}
	}
	why := c.Failure(n)
	if end := (*openssh.MarkError)(nil); n.LoggedIn && why.Cause == openssh.Unknown && c.Silent() && errors.As(err, &end) && end.Printed != "" {
		why.Said = fmt.Sprintf("the account does not run our command; it prints %q", text.Clip(end.Printed, maxPrinted))
	}
	return why
}

// maxPrinted is how much is shown of the last line of an account that does not run our command.
const maxPrinted = 200

func difference(from, to time.Duration) *time.Duration {
	d := max(0, to-from)
	return &d
}

// sleep waits, unless the client ends or the user stops the run.
func (c *client) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.Ended:
		return openssh.ErrEnded
	case <-ctx.Done():
		return context.Canceled
	}
}

// poll waits until done returns true, looking every half millisecond.
func (r *Rig) poll(ctx context.Context, c *client, done func() bool) error {
	for deadline := time.Now().Add(r.Connect); !done(); {
		if err := c.sleep(ctx, 500*time.Microsecond); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return openssh.ErrStalled
		}
	}
	return nil
}
