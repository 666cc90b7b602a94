package mux

import (
	"fmt"

	"golang.org/x/sys/unix"
)

const (
	getTermios = unix.TCGETS2 // with speeds
	disabled   = 0            // _POSIX_VDISABLE
	utf8       = unix.IUTF8
)

// reopen opens a file anew, so that it has a description of its own (proc(5)).
func reopen(fd, mode int) (int, error) {
	return unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), mode|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
}
