//go:build darwin || freebsd

package proc

import "golang.org/x/sys/unix"

// peerOf returns the user and the process at the other end of a Unix socket
// (unix(4) LOCAL_PEERCRED).
func peerOf(fd int) (user, process int, err error) {
	const local = 0 // SOL_LOCAL of sys/un.h
	peer, err := unix.GetsockoptXucred(fd, local, unix.LOCAL_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(peer.Uid), 0, nil
}
