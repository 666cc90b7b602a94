//go:build darwin || freebsd

package mux

import "golang.org/x/sys/unix"

// peerUser returns the user at the other end of a Unix socket (unix(4) LOCAL_PEERCRED).
func peerUser(fd int) (uid int, err error) {
	const local = 0 // SOL_LOCAL of sys/un.h
	peer, err := unix.GetsockoptXucred(fd, local, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
