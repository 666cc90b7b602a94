// Package latency measures how long a byte takes through a session of the real ssh and back, at a
// constant rate: with a terminal and without, with keystrokes obscured and not, on an idle
// connection and beside a bulk transfer.
//
// Bytes are sent by a schedule and never wait for earlier echoes, and latency counts from the
// scheduled time of a byte. So a stall delays all bytes that it would have delayed for a typing
// user, not only the one that ran into it.
package latency

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/text"
	"sshpace/internal/bench/bed"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Names of lanes.
const (
	terminal   = "pty"        // a session like that of a typing user
	unobscured = "unobscured" // the same, with ObscureKeystrokeTiming no
	pipe       = "pipe"       // a session without a terminal
	kept       = "kept"       // a terminal on the connection of the user's own master
)

// obscuring is the setting of ssh (since 9.5) that hides the times of typed keys.
const obscuring = "ObscureKeystrokeTiming"

// laneOptions holds the options of ssh for a lane, and the echoing command at the other end.
type laneOptions struct {
	name     string
	settings []string
	tty      string // RequestTTY
	first    string // done before the other end reports that it echoes
	then     string // the echoing command
}

// allLanes holds the options of ssh for each lane, and the echoing commands. Raw mode keeps the
// terminal at the other end from echoing by itself.
var allLanes = []laneOptions{
	{terminal, nil, "force", "stty raw -echo; ", "cat"},
	{unobscured, []string{obscuring + "=no"}, "force", "stty raw -echo; ", "cat"},
	{pipe, nil, "no", "", "cat"},
	{kept, nil, "force", "stty raw -echo; ", "cat"},
}

// Lanes returns the names of all lanes.
func Lanes() (names []string) {
	for _, w := range allLanes {
		names = append(names, w.name)
	}
	return names
}

// Lane is one session whose bytes come back.
type Lane struct {
	Name string

	*openssh.Running
	in, out *os.File
	limit   time.Duration

	mu   sync.Mutex
	sent []sending
	back int // of them
}

// sending is a byte in flight.
type sending struct {
	echo Echo
	due  time.Time
}

// FailedError reports a session that could not be opened or was lost.
type FailedError struct {
	Lane string
	openssh.Failed
}

// broken returns the error of a session that behaved unexpectedly.
func broken(lane, said string) *FailedError {
	return &FailedError{lane, openssh.Failed{Outcome: record.Broken, Said: said}}
}

func (e *FailedError) Error() string { return cmp.Or(e.Said, "ssh ended") }

// Open logs in and waits until bytes come back. The caller closes the lane.
func Open(ctx context.Context, b bed.Bed, name string) (*Lane, error) {
	i := slices.IndexFunc(allLanes, func(w laneOptions) bool { return w.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no lane %s", name)
	}
	return open(ctx, b, allLanes[i])
}

func open(ctx context.Context, b bed.Bed, w laneOptions) (*Lane, error) {
	log := filepath.Join(os.TempDir(), "sshpace-ping-"+rand.Text())
	defer os.Remove(log) // ssh has it open
	d := b.Destination.With(w.settings...)
	d.Instead = map[string]string{"RequestTTY": w.tty, "Compression": ""} // the latter as configured
	if w.name == kept {
		d = d.Over(d.Master)
	}
	mark := openssh.NewMark()
	argv := b.SSH.Command(d, alg.Suite{}, log, b.Connect, openssh.Shell(w.first+"echo "+mark+"; exec "+w.then))
	ends, err := proc.OpenPipes(os.Pipe)
	if err != nil {
		return nil, err
	}
	l := &Lane{Name: w.name, in: ends.In, out: ends.Out, limit: b.Connect}
	l.Running, err = openssh.Start(argv, d.Env, log, ends.Stdin, ends.Stdout, (*exec.Cmd).Start)
	ends.HandOver()
	if err != nil {
		return nil, errors.Join(err, l.in.Close(), l.out.Close())
	}
	if err := l.greet(ctx, mark); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// greet waits for the mark, which the other end sends when it echoes.
func (l *Lane) greet(ctx context.Context, mark string) error {
	_ = l.out.SetReadDeadline(time.Now().Add(l.limit))
	stop := context.AfterFunc(ctx, func() { _ = l.out.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	switch _, err := openssh.AwaitMark(l.out, mark); {
	case err == nil:
		return l.out.SetReadDeadline(time.Time{})
	case ctx.Err() != nil:
		return context.Canceled
	case errors.Is(err, openssh.ErrEndless):
		return broken(l.Name, "the host prints without end instead of echoing")
	default:
		return l.failed(err)
	}
}

// maxPrinted is how much is shown of the last line of a host that does not run our command.
const maxPrinted = 200

// failed returns the reason why nothing comes any more.
func (l *Lane) failed(err error) error {
	if errors.Is(err, openssh.ErrStalled) {
		n := l.SoFar()
		if mark, ok := errors.AsType[*openssh.MarkError](err); ok && n.LoggedIn && mark.Printed != "" {
			return broken(l.Name, fmt.Sprintf("the host does not run our command; it prints %q and waits", text.Clip(mark.Printed, maxPrinted)))
		}
		return &FailedError{l.Name, n.Late(l.limit)}
	}
	l.Linger()
	l.Kill()
	n := l.SoFar()
	why := l.Failure(n)
	if why.Outcome == record.TimedOut && !n.LoggedIn {
		why = n.Late(l.limit)
	}
	return &FailedError{l.Name, why}
}

// Close ends the session.
func (l *Lane) Close() {
	l.in.Close()
	l.out.Close()
	l.Kill()
	_, _ = l.Negotiation() // the rest of its log does not matter
}
