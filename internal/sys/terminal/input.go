package terminal

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Unread reports whether there is input for this process that nobody has read: bytes in a pipe or a
// file that its parent reads as well, as a shell does that goes through a list of hosts, runs a
// script of its standard input or was started by cron. It waits for nothing and reads nothing. It
// returns false where that cannot be known: without /proc, and after a < of dash, which redirects
// itself first.
func Unread(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	own, err := f.Stat()
	if err != nil || own.Mode()&(os.ModeDevice|os.ModeDir) != 0 {
		return false
	}
	parents, err := os.Stat(fmt.Sprintf("/proc/%d/fd/0", os.Getppid()))
	if err != nil || os.SameFile(own, parents) {
		return false
	}
	if own.Mode().IsRegular() {
		read, err := f.Seek(0, io.SeekCurrent)
		return err == nil && read < own.Size()
	}
	poll := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n > 0 && poll[0].Revents&unix.POLLIN != 0
}
