package tcp

import (
	"fmt"
	"net"
)

// OwnListener accepts connections of our own user.
type OwnListener struct {
	*net.TCPListener
	owner ownerFunc
	me    int // our user, as the kernel knows it
}

// ownerFunc finds the user of the socket of this machine that is connected from local to remote. It
// does not find sockets that their processes have closed already.
type ownerFunc func(local, remote *net.TCPAddr) (uid int, found bool)

// ListenOwn listens on a random port of 127.0.0.1.
func ListenOwn() (*OwnListener, error) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen on loopback: %w", err)
	}
	l := &OwnListener{TCPListener: listener.(*net.TCPListener)}
	here := l.Addr().(*net.TCPAddr)
	for _, owner := range []ownerFunc{diagnosed, listed} {
		if uid, found := owner(here, &net.TCPAddr{IP: net.IPv4zero}); found {
			l.owner, l.me = owner, uid
			return l, nil
		}
	}
	return l, nil // a kernel that reports nothing, not even our own socket
}

// Accept waits for the next connection of a process of ours. If the kernel reports no owners of
// sockets, any connection is accepted.
func (l *OwnListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.AcceptTCP()
		if err != nil {
			return nil, err
		}
		if l.own(conn) {
			return conn, nil
		}
		conn.Close()
	}
}

func (l *OwnListener) own(conn *net.TCPConn) bool {
	if l.owner == nil {
		return true
	}
	here, ok := conn.LocalAddr().(*net.TCPAddr)
	there, ok2 := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return false
	}
	uid, found := l.owner(there, here)
	return found && uid == l.me
}
