// Package proc starts child processes that cannot outlive sshpace and reads
// what CPU time processes have used, from the outside and without disturbing
// them. Clocks, sockets and spawners of other processes exist on Linux alone.
package proc

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Grace is how long the outputs of a program that has ended are read on: what it started may live on and hold them.
const Grace = time.Second

// Run is cmd.Run for a program that starts others, such as ssh a ProxyCommand or
// the ssh to a jump host: it leads a process group of its own, and whatever is
// left of the group ends with it, or with the context of cmd.
func Run(cmd *exec.Cmd) error {
	err := RunTied(cmd)
	if cmd.Process != nil {
		EndGroup(cmd.Process.Pid, 0)
	}
	return err
}

// RunTied is Run for a program that may leave something running, such as the user's own
// command. On Linux it dies with sshpace, even by kill -9.
func RunTied(cmd *exec.Cmd) error {
	Lead(cmd)
	cmd.WaitDelay = Grace
	return run(cmd)
}

// Unattended makes a command that is not yet started one that nobody watches. Without a terminal
// nothing can ask: the ssh of a jump host knows nothing of our BatchMode, and would wait for a
// password that nobody sees it ask for. Its output may stay open for Grace after its end.
func Unattended(cmd *exec.Cmd, env []string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = Grace
	cmd.Env = append(append(os.Environ(), "LC_ALL=C", "SSH_ASKPASS_REQUIRE=never"), env...)
}

// Lead makes a command that is not yet started the leader of a process group,
// and lets its context, if it has one, end the group.
func Lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
}

// groupPoll is how often EndGroup looks whether a group is gone.
const groupPoll = 5 * time.Millisecond

// EndGroup ends what the leader of a process group has left behind. It is called
// right after the leader has been waited for, when its number cannot be in use
// again. The group gets SIGTERM and, where that does not end it within grace,
// SIGKILL. What has a session of its own, such as ssh's ControlPersist master,
// is not in the group.
func EndGroup(leader int, grace time.Duration) {
	if grace > 0 && syscall.Kill(-leader, syscall.SIGTERM) != nil {
		return // nobody is left
	}
	for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(groupPoll) {
		reap(leader, false) // who has ended, and is ours, is there until then
		if syscall.Kill(-leader, 0) != nil {
			return
		}
	}
	_ = syscall.Kill(-leader, syscall.SIGKILL)
}

// KillGroup kills the process group of a started command.
func KillGroup(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
}
