package quickack

import "golang.org/x/sys/unix"

// Now acknowledges what has come so far. The kernel forgets the option after a
// few packets (tcp(7), TCP_QUICKACK).
func Now(fd uintptr) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1)
}
