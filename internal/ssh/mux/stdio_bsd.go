//go:build darwin || freebsd

package mux

import "golang.org/x/sys/unix"

const (
	getTermios = unix.TIOCGETA
	disabled   = 0xff   // _POSIX_VDISABLE
	utf8       = 0x4000 // IUTF8
)

// reopen does not exist here.
func reopen(int, int) (int, error) { return -1, unix.ENOTSUP }
