package tcp

import (
	"errors"
	"iter"
	"net"
	"time"
)

// acceptPause is how long it takes at least until there are descriptors again.
const acceptPause = 10 * time.Millisecond

// Accepted returns the connections to a listener until that is closed. It waits while there are no
// descriptors.
func Accepted(l net.Listener) iter.Seq[net.Conn] {
	return func(yield func(net.Conn) bool) {
		for {
			conn, err := l.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil:
				time.Sleep(acceptPause)
			case !yield(conn):
				return
			}
		}
	}
}
