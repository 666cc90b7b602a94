package proc

import "golang.org/x/sys/unix"

// peerOf returns the user and the process at the other end of a Unix socket
// (unix(7) SO_PEERCRED).
func peerOf(fd int) (user, process int, err error) {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return 0, 0, err
	}
	return int(peer.Uid), int(peer.Pid), nil
}
