// Package proc starts child processes that cannot outlive sshpace and reads the CPU time of
// processes, from the outside and without disturbing them. Clocks, sockets and spawners of other
// processes exist on Linux alone.
package proc

import (
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Grace is how long the outputs of an ended program are still read: a process that it started may
// live on and hold them open.
const Grace = time.Second

// Run is cmd.Run for a program that starts others, such as ssh a ProxyCommand or the ssh to a jump
// host: it leads its own process group, and the rest of the group ends with it, or with the context
// of cmd.
func Run(cmd *exec.Cmd) error {
	err := RunTied(cmd)
	if cmd.Process != nil {
		EndGroup(cmd.Process.Pid, 0)
	}
	return err
}

// RunTied is Run for a program that may leave something running, such as a command of the user. On
// Linux it dies with sshpace, even by kill -9.
func RunTied(cmd *exec.Cmd) error {
	Lead(cmd)
	cmd.WaitDelay = Grace
	return run(cmd)
}

// Unattended prepares a command, before its start, to run without a user. Without a terminal
// nothing can ask: the ssh of a jump host knows nothing of our BatchMode, and would wait for a
// password although nobody sees its question. Its output may stay open for Grace after its end.
func Unattended(cmd *exec.Cmd, env []string) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.WaitDelay = Grace
	cmd.Env = append(append(os.Environ(), "LC_ALL=C", "SSH_ASKPASS_REQUIRE=never"), env...)
}

// Lead prepares a command, before its start, to lead a process group; its context, if it has one,
// then ends the group.
func Lead(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	if cmd.Cancel != nil {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	}
}

// groupPoll is the interval at which EndGroup looks for the group.
const groupPoll = 5 * time.Millisecond

// EndGroup ends the remaining members of a process group. Call it right after waiting for the
// leader, when its number cannot be in use again. The group gets SIGTERM and, where that does not
// end it within grace, SIGKILL. A process with its own session, such as ssh's ControlPersist
// master, is not in the group.
func EndGroup(leader int, grace time.Duration) {
	if grace > 0 && syscall.Kill(-leader, syscall.SIGTERM) != nil {
		return // nobody is left
	}
	for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(groupPoll) {
		reap(leader, false) // an ended process that is ours remains until then
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
