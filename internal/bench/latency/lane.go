// Package latency measures how long a byte takes through a session of the real ssh
// and back, at a constant rate: with a terminal and without, with keystrokes
// obscured and not, on an idle connection and beside a bulk transfer.
//
// Bytes are sent by a schedule and never wait for earlier echoes, and latency
// counts from when a byte was to be sent. So a stall delays all bytes that it
// would have delayed of somebody who types, not only the one that ran into it.
package latency

import (
	"bytes"
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
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Names of lanes.
const (
	terminal   = "pty"        // a session as somebody has who types
	unobscured = "unobscured" // the same, with ObscureKeystrokeTiming no
	pipe       = "pipe"       // a session without a terminal
)

// obscuring is the setting of ssh (since 9.5) that hides when keys are typed.
const obscuring = "ObscureKeystrokeTiming"

// way is what a lane asks of ssh, and what is to echo at the other end.
type way struct {
	name     string
	settings []string
	tty      string // RequestTTY
	remote   string
}

// ways are what each lane asks of ssh, and what echoes at the other end. Raw mode
// keeps the terminal there from echoing by itself.
var ways = []way{
	{terminal, nil, "force", "stty raw -echo; echo " + ready + "; exec cat"},
	{unobscured, []string{obscuring + "=no"}, "force", "stty raw -echo; echo " + ready + "; exec cat"},
	{pipe, nil, "no", "echo " + ready + "; exec cat"},
}

// Lanes are the names of all lanes.
func Lanes() (names []string) {
	for _, w := range ways {
		names = append(names, w.name)
	}
	return names
}

// ready is said by the other end before it echoes.
const ready = "sshpace-ready"

// Lane is one session whose bytes come back.
type Lane struct {
	Name string

	*proc.Child
	in, out *os.File
	said    *proc.Tail
	log     *proc.Log // ssh's own, by ssh -v
	limit   time.Duration

	mu   sync.Mutex
	sent []sending
	back int // of them
}

// sending is a byte on its way.
type sending struct {
	echo Echo
	due  time.Time
}

// maxSaid is what is kept of what ssh says on standard error, in bytes.
const maxSaid = 64 << 10

// Client is the ssh that lanes are made with, and where it leads.
type Client struct {
	SSH         openssh.Program
	Destination openssh.Destination
	Connect     time.Duration // how long a login may take
}

// FailedError is a session that did not come about, or ended.
type FailedError struct {
	Lane string
	openssh.Failed
}

// broken is a session that did not do what it should.
func broken(lane, said string) *FailedError {
	return &FailedError{lane, openssh.Failed{Outcome: record.Broken, Said: said}}
}

func (e *FailedError) Error() string { return cmp.Or(e.Said, "ssh ended") }

// Open logs in and waits until bytes come back. The caller closes the lane.
func (c *Client) Open(ctx context.Context, name string) (*Lane, error) {
	i := slices.IndexFunc(ways, func(w way) bool { return w.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no lane %s", name)
	}
	return c.open(ctx, ways[i])
}

func (c *Client) open(ctx context.Context, w way) (*Lane, error) {
	path := filepath.Join(os.TempDir(), "sshpace-ping-"+rand.Text())
	log, err := proc.OpenLog(path)
	if err != nil {
		return nil, err
	}
	defer os.Remove(path) // ssh has it open
	l := &Lane{Name: w.name, said: &proc.Tail{Max: maxSaid}, log: log, limit: c.Connect}
	if err := c.start(l, w, path); err != nil {
		log.Close()
		return nil, err
	}
	log.Follow(func() { proc.KillGroup(l.Cmd) })
	if err := l.greet(ctx); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

// start starts ssh with pipes at both ends.
func (c *Client) start(l *Lane, w way, log string) error {
	d := c.Destination.With(w.settings...)
	d.Instead = map[string]string{"RequestTTY": w.tty, "Compression": ""} // the latter as configured
	argv := c.SSH.Command(d, alg.Suite{}, log, c.Connect, "exec sh -c '"+w.remote+"'")
	ends, err := proc.OpenPipes(os.Pipe)
	if err != nil {
		return err
	}
	l.in, l.out = ends.In, ends.Out
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = ends.Stdin, ends.Stdout, l.said
	cmd.Env = append(os.Environ(), d.Env...)
	cmd.WaitDelay = time.Second
	proc.Lead(cmd)
	l.Child, err = proc.Begin(cmd, (*exec.Cmd).Start)
	ends.HandOver()
	if err != nil {
		l.in.Close()
		l.out.Close()
	}
	return err
}

// greet waits for the line that says that the other end echoes; what a login
// prints before that is passed over.
func (l *Lane) greet(ctx context.Context) error {
	const most = 64 << 10
	_ = l.out.SetReadDeadline(time.Now().Add(l.limit))
	stop := context.AfterFunc(ctx, func() { _ = l.out.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	var text []byte
	for one := make([]byte, 1); len(text) < most; {
		if _, err := l.out.Read(one); err != nil {
			if ctx.Err() != nil {
				return context.Canceled
			}
			return l.failed(err)
		}
		if text = append(text, one[0]); bytes.HasSuffix(text, []byte(ready+"\n")) {
			return l.out.SetReadDeadline(time.Time{})
		}
	}
	return broken(l.Name, "the host prints without end instead of echoing")
}

// failed says why nothing comes any more.
func (l *Lane) failed(err error) error {
	late := errors.Is(err, os.ErrDeadlineExceeded)
	if !late && !l.Await(lastWords) {
		l.Kill()
	}
	n := openssh.ParseVerbose(l.log.Rest())
	why := openssh.Failure(n, l.said.String())
	if late || why.Outcome == record.TimedOut && !n.LoggedIn {
		why = n.Late(l.limit)
	}
	return &FailedError{l.Name, why}
}

// lastWords is how long an ssh that has closed its output may take to say why.
const lastWords = time.Second

// Close ends the session.
func (l *Lane) Close() {
	l.in.Close()
	l.out.Close()
	l.Kill()
	l.log.Close()
}
