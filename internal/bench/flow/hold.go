//go:build linux

package flow

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// forever is how long sleep(1) holds the pipes of a connection, in seconds.
const forever = "2147483647"

// hold keeps the pipes of a connection open without ever waking up: it writes its process and that
// of its parent, the server's, into a file, and becomes a sleep(1). The kernel ends it with its
// parent (prctl(2) PR_SET_PDEATHSIG, which execve(2) keeps), so that nothing stays when the
// connection ends: sshd only closes the pipes, which a sleeping process never notices.
func hold(path string) error {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the signal belongs to the thread that becomes the process
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("prctl: %w", err)
	}
	said := strconv.Itoa(os.Getpid()) + " " + strconv.Itoa(os.Getppid()) + "\n"
	if err := os.WriteFile(path+".new", []byte(said), 0o600); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syscall.Exec(sleep, []string{"sleep", forever}, os.Environ())
}

// Holding reports whether a process has finished becoming the sleeping process of hold. Until then
// it is within execve(2), where /proc shows none of its files.
func Holding(pid int) bool {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return string(name) == "sleep\n"
}
