package proc

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"
)

// Child is a program that was started and is waited for. What is left of its process group, if it
// leads one, ends with it.
type Child struct {
	*exec.Cmd
	Began time.Time
	Ended chan struct{} // closed when it has been waited for
	End   error         // of the wait, once it has ended
	cut   atomic.Bool   // it had not ended when we killed it
	left  time.Duration // CPU time of what of its group it did not wait for
}

// Begin has start, such as that of a Spawner, start a command.
func Begin(cmd *exec.Cmd, start func(*exec.Cmd) error) (*Child, error) {
	c := &Child{Cmd: cmd, Began: time.Now(), Ended: make(chan struct{})}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	go func() {
		c.End = Wait(cmd)
		KillGroup(cmd) // at once, when its number cannot be in use again
		c.left = reap(cmd.Process.Pid, true)
		close(c.Ended)
	}()
	return c, nil
}

// HasEnded reports whether it has.
func (c *Child) HasEnded() bool { return c.Await(0) }

// Await waits so long for the end, and reports whether it has come.
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

// Kill ends the program, unless it has ended by itself, and its group, and waits for it.
func (c *Child) Kill() {
	if !c.HasEnded() {
		c.cut.Store(true)
		KillGroup(c.Cmd)
	}
	<-c.Ended
}

// CPU is the CPU time of it and of the children that it waited for, once it has ended. What it left in its group
// counts, too, where a Spawner has made its orphans ours: of an account that is not root's, sshd does not wait for the
// process that moves all bytes, nor ssh for a ProxyCommand.
func (c *Child) CPU() time.Duration {
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime() + c.left
}

// Slain says which signal of somebody else's ended the program, if one did; only after it has
// ended.
func (c *Child) Slain() (detail string, ok bool) {
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || c.cut.Load() || !status.Signaled() {
		return "", false
	}
	return fmt.Sprintf("%s was killed by signal %d (%s)", filepath.Base(c.Path), status.Signal(), status.Signal()), true
}
