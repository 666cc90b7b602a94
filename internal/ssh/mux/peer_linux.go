package mux

import "golang.org/x/sys/unix"

// peerUser returns the user at the other end of a Unix socket (unix(7) SO_PEERCRED).
func peerUser(fd int) (uid int, err error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Uid), nil
}
