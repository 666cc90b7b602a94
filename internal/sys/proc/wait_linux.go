package proc

import (
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Wait is cmd.Wait without a thread that sleeps until the process has ended: with
// hundreds of processes there would be hundreds of threads, and each look at the CPU
// time of our own process adds up all of them.
func Wait(cmd *exec.Cmd) error {
	awaitEnd(cmd.Process.Pid)
	return cmd.Wait()
}

// awaitEnd returns when a child can be waited for, or at once where the kernel has no
// descriptors of processes (pidfd_open(2), Linux 5.3; without blocking, 5.10).
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

// run is cmd.Run for a process that the kernel kills when ours dies. The wish belongs to
// the thread that starts it (prctl(2) PR_SET_PDEATHSIG), which therefore waits, too.
func run(cmd *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd.SysProcAttr.Pdeathsig = unix.SIGKILL
	return cmd.Run()
}
