//go:build linux

package drive

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/bench/flow"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// stream is one direction of a connection: bytes written into one pipe come out of the other. We
// hold both far ends.
type stream struct {
	in, out *os.File
	perByte float64 // wall time in ns, learnt from slices
	slices  int
	room    int64 // that the pipes keep; 0 while they are narrow
}

// connection is an SSH connection that stays open. At its remote end a process sleeps (flow's
// hold), whose pipes we open once more from here: no process of ours has to wake up at either end
// while data moves.
type connection struct {
	*client
	holder  string // file with the identity of the remote end
	streams map[record.Direction]*stream
	clocks  [2]*proc.Clock   // client, server
	used    [2]time.Duration // at the end of the last slice
	mover   *mover
}

// dial starts a client that holds a connection with the trial's suite.
func (p *Private) dial(t record.Trial) (*connection, error) {
	ends, err := proc.OpenPipes(flow.Pipe)
	if err != nil {
		return nil, err
	}
	c := &connection{holder: p.Dir.File(fmt.Sprintf("holder.%d", t.ID)), mover: p.mover, streams: map[record.Direction]*stream{
		record.Upload: {in: ends.In}, record.Download: {out: ends.Out},
	}}
	log := p.Dir.File(fmt.Sprintf("sitting.%d", t.ID))
	c.client, err = p.startClient(p.Client(t.Asked(), log, flow.Command(p.Helper("flow"), "hold", c.holder)), nil, t.Asked(), log, ends.Stdin, ends.Stdout)
	ends.HandOver()
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// await waits until the remote end is ready, and opens its pipes and clocks.
func (p *Private) await(ctx context.Context, c *connection) error {
	var holder, server int
	err := p.poll(ctx, c.client, func() bool {
		text, err := os.ReadFile(c.holder)
		if err != nil {
			return false
		}
		n, _ := fmt.Sscan(string(text), &holder, &server)
		return n == 2 && flow.Holding(holder)
	})
	if conn := p.Server.Serving(server); conn != nil {
		conn.Settled()
	}
	if err != nil {
		return err
	}
	if c.streams[record.Upload].out, err = openPipe(holder, 0, unix.O_RDONLY); err != nil {
		return err
	}
	if c.streams[record.Download].in, err = openPipe(holder, 1, unix.O_WRONLY); err != nil {
		return err
	}
	for i, pid := range []int{c.Process.Pid, server} {
		if c.clocks[i], err = proc.OpenClock(pid); err != nil {
			return openssh.ErrEnded
		}
	}
	return nil
}

// openPipe opens a pipe that another process of this user holds (proc_pid_fd(5)).
func openPipe(pid, fd, flags int) (*os.File, error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
	h, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENXIO) {
		return nil, &failure{record.Broken, "the server gives its commands sockets, not pipes"}
	}
	if err != nil {
		return nil, &failure{record.Broken, fmt.Sprintf("open %s: %v", path, err)}
	}
	return os.NewFile(uintptr(h), path), nil
}

// close releases a connection whose client has ended.
func (c *connection) close() {
	for _, s := range c.streams {
		for _, f := range []*os.File{s.in, s.out} {
			if f != nil {
				f.Close()
			}
		}
	}
	for _, clock := range c.clocks {
		if clock != nil {
			clock.Close()
		}
	}
	_ = os.Remove(c.holder)
}

// read returns the CPU time of both sides so far.
func (c *connection) read() (used [2]time.Duration, err error) {
	return c.each((*proc.Clock).CPU)
}

// asleep returns the CPU time of both sides, which sleep.
func (c *connection) asleep() (used [2]time.Duration, err error) {
	return c.each((*proc.Clock).Asleep)
}

func (c *connection) each(look func(*proc.Clock) (time.Duration, error)) (used [2]time.Duration, err error) {
	for i, clock := range c.clocks {
		if used[i], err = look(clock); err != nil {
			return used, openssh.ErrEnded
		}
	}
	return used, nil
}

// end closes the connection and returns the number of rekeys.
func (c *connection) end() (rekeys int) {
	c.Kill()
	n, _ := c.Negotiation()
	c.close()
	return n.Rekeys
}
