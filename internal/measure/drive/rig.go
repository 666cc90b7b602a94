//go:build linux

// Package drive carries out trials with real processes: an SSH client, the
// flows at either end, and clocks on all of them. Private drives the server of
// this run on loopback, Remote a host of the user's.
package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/flow"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/workdir"
)

// Rig is what both drivers need.
type Rig struct {
	Dir     *workdir.Dir
	Spawner *proc.Spawner
	// Flow is the command line of a flow process (flow.Main); its arguments are
	// appended.
	Flow []string
	Data string // "zero" or "random"
	// Connect is how long a connection may take until the remote side is ready,
	// and how long a transfer may stand still.
	Connect time.Duration
	Env     []string // of the client, beside our own

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
	stderr  *tail
	started time.Time
	ended   chan struct{} // closed when the process has been waited for
	cut     bool          // it had not ended when we killed it
}

// startClient starts argv, which asks for the names of offer. Files given as stdin and stdout are handed to the
// process itself, so that nothing of ours stands in the path of the data.
func (r *Rig) startClient(argv []string, offer alg.Suite, log string, stdin, stdout *os.File) (*client, error) {
	c := &client{cmd: exec.Command(argv[0], argv[1:]...), offer: offer, stderr: &tail{}, ended: make(chan struct{})}
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
	// Without a terminal nothing can ask: the ssh of a jump host knows nothing of
	// our BatchMode, and would wait for a password that nobody sees it ask for.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.cmd.WaitDelay = time.Second // a jump host's ssh may hold stderr open
	c.cmd.Env = append(append(os.Environ(), "LC_ALL=C", "SSH_ASKPASS_REQUIRE=never"), r.Env...)
	c.started = time.Now()
	if err := r.Spawner.Start(c.cmd); err != nil {
		c.log.Close()
		return nil, fmt.Errorf("start %s: %w", argv[0], err)
	}
	c.log.Follow(c.killAsync)
	go func() {
		_ = c.cmd.Wait()
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
func (c *client) finish(s *record.Sample, err error) openssh.Negotiation {
	n, logErr := c.negotiation()
	if logErr != nil && !errors.Is(err, context.Canceled) {
		err = logErr
	}
	c.judge(s, n, err)
	return n
}

// judge fills in what was negotiated and how that went.
func (c *client) judge(s *record.Sample, n openssh.Negotiation, err error) {
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
	var known *failure
	switch {
	case err == nil:
		s.Outcome = record.OK
	case errors.As(err, &known):
		s.Outcome, s.Detail = known.outcome, known.detail
	case errors.Is(err, context.Canceled):
		s.Outcome, s.Detail = record.Aborted, "stopped by the user"
	case errors.Is(err, errStalled), errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded):
		s.Outcome, s.Detail = record.TimedOut, err.Error()
	default:
		s.Outcome, s.Detail = openssh.Failure(n, c.stderr.String())
		if detail, ok := c.slain(); ok {
			s.Outcome, s.Detail = record.Broken, detail
		}
	}
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
		_ = h.cmd.Wait()
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

// meters are the clocks of one transfer.
type meters struct {
	bytes   func() int64 // at the sink, or as near to it as can be seen
	way     record.Direction
	client  *proc.Clock
	server  *proc.Clock // nil on another machine
	harness []*proc.Clock
}

func (m *meters) close() {
	for _, clock := range append(m.harness, m.client, m.server) {
		if clock != nil {
			clock.Close()
		}
	}
}

// reading is one look at all meters.
type reading struct {
	at                     time.Time
	bytes                  int64
	client, server         time.Duration
	clientWait, serverWait time.Duration
	waits                  bool
	clientSeen, serverSeen int64 // bytes on the wire; 0: unknown
	harness                time.Duration
	load                   proc.Load
}

func (m *meters) read() (reading, error) {
	r := reading{at: time.Now(), bytes: m.bytes()}
	var err error
	if r.client, err = m.client.CPU(); err != nil {
		return r, errEnded
	}
	r.clientWait, r.waits = m.client.Wait()
	r.clientSeen = onWire(m.client, m.way == record.Upload)
	if m.server != nil {
		if r.server, err = m.server.CPU(); err != nil {
			return r, errEnded
		}
		r.serverWait, _ = m.server.Wait()
		r.serverSeen = onWire(m.server, m.way == record.Download)
	}
	for _, clock := range m.harness {
		if cpu, err := clock.CPU(); err == nil {
			r.harness += cpu
		}
	}
	r.load, _ = proc.ReadLoad()
	return r, nil
}

// onWire is how much a side has sent, or received: what it has encrypted or
// decrypted, wherever the bytes are now. Megabytes wait in buffers between client
// and sink.
func onWire(c *proc.Clock, sends bool) int64 {
	read, written, ok := c.Traffic()
	switch {
	case !ok:
		return 0
	case sends:
		return written
	}
	return read
}

// segment is what happened between two readings.
func (m *meters) segment(from, to reading, start time.Time, spin time.Duration) record.Segment {
	s := record.Segment{
		StartNS: from.at.Sub(start), WallNS: to.at.Sub(from.at), Bytes: unit.Bytes(to.bytes - from.bytes),
		ClientCPUNS: difference(from.client, to.client), HarnessCPUNS: to.harness - from.harness,
		StealNS: to.load.Steal - from.load.Steal, SpinNS: spin,
	}
	ours := *s.ClientCPUNS + s.HarnessCPUNS
	s.ClientBytes = unit.Bytes(max(0, to.clientSeen-from.clientSeen))
	if from.waits && to.waits {
		s.ClientWaitNS = difference(from.clientWait, to.clientWait)
	}
	if m.server != nil {
		s.ServerCPUNS = difference(from.server, to.server)
		ours += *s.ServerCPUNS
		s.ServerBytes = unit.Bytes(max(0, to.serverSeen-from.serverSeen))
		if from.waits && to.waits {
			s.ServerWaitNS = difference(from.serverWait, to.serverWait)
		}
	}
	if busy := to.load.Busy - from.load.Busy; busy > ours {
		s.ForeignCPUNS = busy - ours
	}
	return s
}

func difference(from, to time.Duration) *time.Duration {
	d := max(0, to-from)
	return &d
}

// Warm-up. On loopback the cost per byte of either side is steady 10 ms after
// the first byte; what takes longer is that all buffers on the way fill up,
// which look like speed as long as they do: a pipe of 1 MiB, the window of a
// channel of 2 MiB (OpenSSH channels.h), and sockets' buffers of up to 4 MiB
// (tcp(7) tcp_wmem).
const (
	warmUpLook    = 5 * time.Millisecond
	warmUpLeast   = 25 * time.Millisecond
	warmUpBytes   = 8 << 20
	warmUpPrivate = 150 * time.Millisecond // at most, on loopback
	warmUpRemote  = 500 * time.Millisecond // at most, over a network
)

// warm reports whether a connection has moved enough to be timed.
func warm(passed time.Duration, moved int64, limit time.Duration) bool {
	return passed >= limit || passed >= warmUpLeast && moved >= warmUpBytes
}

// timed warms the connection up, for at most limit, and times the segments of
// the trial.
func (r *Rig) timed(ctx context.Context, t record.Trial, c *client, m *meters, spin, limit time.Duration) ([]record.Segment, error) {
	first, err := m.read()
	if err != nil {
		return nil, err
	}
	last := first
	for !warm(last.at.Sub(first.at), last.bytes-first.bytes, limit) {
		if last, err = r.next(ctx, c, m, last, warmUpLook); err != nil {
			return nil, err
		}
	}
	var segments []record.Segment
	for range t.Segments {
		now, err := r.next(ctx, c, m, last, t.SegmentNS)
		if err != nil {
			return segments, err
		}
		segments = append(segments, m.segment(last, now, c.started, spin))
		last = now
	}
	return segments, nil
}

// next sleeps for one segment and reads the meters. A segment in which nothing
// moved is made longer, until the stall limit.
func (r *Rig) next(ctx context.Context, c *client, m *meters, last reading, length time.Duration) (reading, error) {
	for {
		if err := c.sleep(ctx, length); err != nil {
			return last, err
		}
		now, err := m.read()
		if err != nil || now.bytes > last.bytes {
			return now, err
		}
		if now.at.Sub(last.at) > r.Connect {
			return now, errStalled
		}
	}
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

// tail keeps the last bytes that are written to it: what a program says last is
// why it ended.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailLimit = 8 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailLimit):]...)
	t.text = append(t.text[:0], t.text[max(0, len(t.text)-tailLimit):]...)
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.text)
}
