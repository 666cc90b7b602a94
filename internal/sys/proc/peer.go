package proc

import "net"

// Peer returns the user and the process at the other end of a Unix socket; the process is 0 where
// the system does not report it.
func Peer(conn *net.UnixConn) (user, process int, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, 0, err
	}
	if failed := raw.Control(func(fd uintptr) { user, process, err = peerOf(int(fd)) }); failed != nil {
		err = failed
	}
	return user, process, err
}
