package proc

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// Child is a program that was started and is waited for. The rest of its process group, if it leads
// one, ends with it.
type Child struct {
	*exec.Cmd
	Began time.Time
	Ended chan struct{} // closed after the wait
	End   error         // of the wait, once it has ended
	cut   atomic.Bool   // we killed it before it ended
	left  time.Duration // CPU time of members of its group that it did not wait for
}

// Begin starts a command by start, such as that of a Spawner, and waits for it in the background.
func Begin(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Child, error) {
	c := &Child{Cmd: cmd, Began: time.Now(), Ended: make(chan struct{})}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		c.End = Wait(cmd)
		KillGroup(cmd) // at once, while its number cannot be in use again
		c.left = reap(cmd.Process.Pid, true)
		close(c.Ended)
	}()
	return c, nil
}

// HasEnded reports whether the program has ended.
func (c *Child) HasEnded() bool { return c.Await(0) }

// Await waits for the end, for limit at most, and reports whether it has come.
func (c *Child) Await(limit time.Duration) bool {
	select {
	case <-c.Ended:
		return true
	default:
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-c.Ended:
		return true
	case <-late.C:
		return false
	}
}

// Kill ends the program, unless it has ended by itself, and its group, and waits for both.
func (c *Child) Kill() {
	if !c.HasEnded() {
		c.cut.Store(true)
		KillGroup(c.Cmd)
	}
	<-c.Ended
}

// CPU returns the CPU time of the program and of the children that it waited for, once it has
// ended. The rest of its group counts, too, where a Spawner has made its orphans ours: for an
// account other than root, sshd does not wait for the process that moves all bytes, nor ssh for a
// ProxyCommand.
func (c *Child) CPU() time.Duration {
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime() + c.left
}

// Slain names the signal by which somebody else ended the program, if that is so; call it only
// after the end.
func (c *Child) Slain() (detail string, ok bool) {
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || c.cut.Load() || !status.Signaled() {
		return "", false
	}
	return fmt.Sprintf("%s was killed by signal %d (%s)", filepath.Base(c.Path), status.Signal(), status.Signal()), true
}
