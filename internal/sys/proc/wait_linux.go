package proc

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Wait is cmd.Wait without a thread that sleeps until the process has ended: with hundreds of
// processes there would be hundreds of threads, and each look at the CPU time of our own process
// adds up all of them.
func Wait(cmd *exec.Cmd) error {
	awaitEnd(cmd.Process.Pid)
	return cmd.Wait()
}

// awaitEnd returns when a child can be waited for, or at once where the kernel has no descriptors
// of processes (pidfd_open(2), Linux 5.3; without blocking, 5.10).
func awaitEnd(pid int) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	process := os.NewFile(uintptr(fd), "pidfd")
	defer process.Close()
	conn, err := process.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(func(fd uintptr) bool {
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return ready > 0 || err != nil && err != unix.EINTR
	})
}

// adopt makes us the parent of orphans of our processes (prctl(2)), so that their CPU time can be
// known, until undo; then they are init's again. If we already are that, undo is left to the
// earlier caller.
func adopt() (undo func()) {
	var already int32
	if unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&already)), 0, 0, 0) == nil && already != 0 {
		return func() {}
	}
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	return func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }
}

// reap waits for the ended orphans of a process group, or with all until they have ended, and
// returns the CPU time of those that are ours.
func reap(group int, all bool) (used time.Duration) {
	options := syscall.WNOHANG
	if all {
		options = 0
	}
	for {
		var usage syscall.Rusage
		switch pid, err := syscall.Wait4(-group, nil, options, &usage); {
		case pid > 0:
			used += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
		case err != syscall.EINTR:
			return used
		}
	}
}

// run is cmd.Run for a process that the kernel kills when ours dies. The request belongs to the
// thread that starts it (prctl(2) PR_SET_PDEATHSIG), which therefore waits, too.
func run(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Pdeathsig = unix.SIGKILL
	return cmd.Run()
}
