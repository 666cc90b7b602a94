// Package quickack reads from TCP connections whose other end writes several
// small packets in a row with Nagle's algorithm on: each of them waits until the
// one before has been acknowledged (RFC 896), which the kernel delays by 40 ms
// (RFC 1122 section 4.2.3.2). Both sides of an OpenSSH login do that.
package quickack

import (
	"net"
	"syscall"
)

// Reader reads a connection and acknowledges at once. Where the kernel does not
// permit or know that, and on what is no TCP connection, it only reads.
type Reader struct {
	conn net.Conn
	raw  syscall.RawConn // nil: just read
	bulk bool            // the last read was as large as in a transfer
}

// bulkRead is more than a packet of a login. Data that flows is acknowledged
// well without our help.
const bulkRead = 2048

// New returns a reader of c.
func New(c net.Conn) *Reader {
	r := &Reader{conn: c}
	if tcp, ok := c.(*net.TCPConn); ok {
		r.raw, _ = tcp.SyscallConn()
	}
	return r
}

// Read reads. What Now asks for is soon forgotten, hence again before every read
// that may have to wait.
func (r *Reader) Read(p []byte) (int, error) {
	if r.raw != nil && !r.bulk {
		r.acknowledge()
	}
	n, err := r.conn.Read(p)
	r.bulk = n >= bulkRead
	return n, err
}

func (r *Reader) acknowledge() {
	var refused error
	err := r.raw.Control(func(fd uintptr) { refused = Now(fd) })
	if err != nil || refused != nil {
		r.raw = nil
	}
}
