//go:build linux

// Package drive carries out trials with real processes: an SSH client, the
// flows at either end, and clocks on all of them. Private drives the server of
// this run on loopback, Remote a host of the user's.
package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/flow"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

// Rig is what both drivers need.
type Rig struct {
	Dir     *safedir.Workdir
	Spawner *proc.Spawner
	// Flow is the command line of a flow process (flow.Main); its arguments are
	// appended.
	Flow []string
	Data string // "zero" or "random"
	// Connect is how long a connection may take until the remote side is ready,
	// and how long a transfer may stand still.
	Connect time.Duration

	serial int
}

// file names a new file of this trial.
func (r *Rig) file(kind string) string {
	r.serial++
	return r.Dir.File(kind + "." + strconv.Itoa(r.serial))
}

// client is a running SSH client process.
type client struct {
	cmd     *exec.Cmd
	offer   alg.Suite // the only names that it may negotiate
	log     *proc.Log
	stderr  *proc.Tail
	started time.Time
	ended   chan struct{} // closed when the process has been waited for
	cut     bool          // it had not ended when we killed it
}

// startClient starts argv, which asks for the names of offer. Files given as stdin and stdout are handed to the
// process itself, so that nothing of ours stands in the path of the data.
func (r *Rig) startClient(argv, env []string, offer alg.Suite, log string, stdin, stdout *os.File) (*client, error) {
	c := &client{cmd: exec.Command(argv[0], argv[1:]...), offer: offer, stderr: &proc.Tail{Max: 8 << 10}, ended: make(chan struct{})}
	var err error
	if c.log, err = proc.OpenLog(log); err != nil {
		return nil, err
	}
	if stdin != nil {
		c.cmd.Stdin = stdin
	}
	if stdout != nil {
		c.cmd.Stdout = stdout
	}
	c.cmd.Stderr = c.stderr
	proc.Unattended(c.cmd, env)
	c.started = time.Now()
	if err := r.Spawner.Start(c.cmd); err != nil {
		c.log.Close()
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	c.log.Follow(c.killAsync)
	go func() {
		_ = proc.Wait(c.cmd)
		close(c.ended)
	}()
	return c, nil
}

// lingerLimit is how long a client whose output ended may take to say why.
const lingerLimit = time.Second

// linger gives a client whose output ended a moment to say why.
func (c *client) linger(why error) {
	if errors.Is(why, errEnded) {
		_ = c.awaitEnd(lingerLimit)
	}
}

// kill ends the client, unless it has ended by itself, and waits for it.
func (c *client) kill() {
	select {
	case <-c.ended:
	default:
		c.cut = true
	}
	proc.KillGroup(c.cmd)
	<-c.ended
}

// slain says which signal of somebody else's ended the client, if one did; only
// after it has ended.
func (c *client) slain() (detail string, ok bool) {
	status, ok := c.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || c.cut || !status.Signaled() {
		return "", false
	}
	return fmt.Sprintf("%s was killed by signal %d (%s)", filepath.Base(c.cmd.Path), status.Signal(), status.Signal()), true
}

// converse starts a client, and runs body on what it writes, for which there is so much time. After that the
// client has ended; bodyErr is how body did, or that ctx has ended.
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
	s.Start = c.started
	_ = read.SetReadDeadline(time.Now().Add(limit))
	stop := context.AfterFunc(ctx, c.killAsync)
	bodyErr = body(c, read)
	stop()
	c.linger(bodyErr)
	c.kill()
	if ctx.Err() != nil {
		bodyErr = context.Canceled
	}
	return c, s, bodyErr, nil
}

// cpu is the CPU time of the client and the children it waited for; only after
// it has ended.
func (c *client) cpu() time.Duration {
	return c.cmd.ProcessState.UserTime() + c.cmd.ProcessState.SystemTime()
}

// negotiation reads and removes the debug log. The error is what is wrong with
// the log itself, which is the peer's doing.
func (c *client) negotiation() (openssh.Negotiation, error) {
	text, flooded := c.log.Close()
	if flooded {
		return openssh.ParseVerbose(text), &failure{record.Broken, fmt.Sprintf("the host made %s write more than %d MiB of debug messages; it was ended", filepath.Base(c.cmd.Path), proc.MaxLog>>20)}
	}
	return openssh.ParseVerbose(text), nil
}

// failure is why a trial ended early.
type failure struct {
	outcome record.Outcome
	detail  string
}

func (f *failure) Error() string { return string(f.outcome) + ": " + f.detail }

var (
	errEnded   = errors.New("the client ended")
	errStalled = errors.New("no byte arrived in time")
)

// finish turns what a trial saw into its sample. err nil means that all went
// well as far as the harness could see.
func (c *client) finish(s *record.Sample, err error) (openssh.Negotiation, openssh.Failed) {
	n, logErr := c.negotiation()
	if logErr != nil && !errors.Is(err, context.Canceled) {
		err = logErr
	}
	return n, c.judge(s, n, err)
}

// judge fills in what was negotiated and how that went.
func (c *client) judge(s *record.Sample, n openssh.Negotiation, err error) openssh.Failed {
	s.ElapsedNS = time.Since(c.started)
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

// why is how a trial ended.
func (c *client) why(n openssh.Negotiation, err error) openssh.Failed {
	var known *failure
	switch {
	case err == nil:
		return openssh.Failed{Outcome: record.OK}
	case errors.As(err, &known):
		return openssh.Failed{Outcome: known.outcome, Said: known.detail}
	case errors.Is(err, context.Canceled):
		return openssh.Failed{Outcome: record.Aborted, Said: "stopped by the user"}
	case errors.Is(err, errStalled), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		return openssh.Failed{Outcome: record.TimedOut, Said: err.Error()}
	}
	if detail, ok := c.slain(); ok {
		return openssh.Failed{Outcome: record.Broken, Said: detail}
	}
	why := openssh.Failure(n, c.stderr.String())
	if end := (*endError)(nil); n.LoggedIn && why.Cause == openssh.Unknown && c.stderr.String() == "" && errors.As(err, &end) {
		why.Said = cmp.Or(end.says(), why.Said)
	}
	return why
}

// helper is a flow process of ours at this end.
type helper struct {
	cmd     *exec.Cmd
	counter *flow.Counter
	path    string
	ended   chan struct{} // closed when the process has been waited for
}

// startFlow starts a flow process with a counter of its own. in and out may be
// nil; they stay open for the caller to close.
func (r *Rig) startFlow(in, out *os.File, args ...string) (*helper, error) {
	path := r.file("flow")
	counter, err := flow.CreateCounter(path)
	if err != nil {
		return nil, err
	}
	full := append(append(r.Flow[1:len(r.Flow):len(r.Flow)], args[0], path), args[1:]...)
	h := &helper{cmd: exec.Command(r.Flow[0], full...), counter: counter, path: path, ended: make(chan struct{})}
	if in != nil {
		h.cmd.Stdin = in
	}
	if out != nil {
		h.cmd.Stdout = out
	}
	if err := r.Spawner.Start(h.cmd); err != nil {
		counter.Close()
		_ = os.Remove(path)
		return nil, fmt.Errorf("start flow: %w", err)
	}
	go func() {
		_ = proc.Wait(h.cmd)
		close(h.ended)
	}()
	return h, nil
}

// awaitEnd waits for the flow process to end by itself, as it does at the end
// of its stream.
func (h *helper) awaitEnd(limit time.Duration) error {
	select {
	case <-h.ended:
		return nil
	case <-time.After(limit):
		return errStalled
	}
}

// close ends the flow process if it has not ended by itself.
func (h *helper) close() {
	proc.KillGroup(h.cmd)
	<-h.ended
	h.counter.Close()
	_ = os.Remove(h.path)
}

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
	case <-c.ended:
		return errEnded
	case <-ctx.Done():
		return context.Canceled
	}
}

// poll waits until done says so, looking every half millisecond.
func (r *Rig) poll(ctx context.Context, c *client, done func() bool) error {
	for deadline := time.Now().Add(r.Connect); !done(); {
		if err := c.sleep(ctx, 500*time.Microsecond); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return errStalled
		}
	}
	return nil
}
