// Package tcp extends the sockets of the standard library: short packets without delayed
// acknowledgements, and a port of loopback that only our own user can connect to.
package tcp

import (
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// QuickConn is a connection that acknowledges received data at once. Where the kernel does not
// permit or know that, and on anything but a TCP connection, nothing changes. One goroutine may
// read while another writes.
//
// Short data is read and written without telling Go's scheduler. A program that waits for its
// servers is idle in between; its first system call afterwards would wake the thread that watches
// over others' (sysmon), which then looks fifty times: a tenth of a login's CPU time. These calls
// do not wait.
type QuickConn struct {
	net.Conn
	in, out syscall.RawConn // nil: reads as package net does
	flows   bool            // the last read was as large as in a transfer

	received, sent atomic.Int64
}

// short is less than that: more than a packet of a login. The kernel acknowledges flowing data well
// without our help.
const short = 2048

// Quick makes a QuickConn of c.
func Quick(c net.Conn) *QuickConn {
	q := &QuickConn{Conn: c}
	if tcp, ok := c.(*net.TCPConn); ok && direct {
		if raw, err := tcp.SyscallConn(); err == nil {
			q.in, q.out = raw, raw
		}
	}
	return q
}

// RoundTrip returns the round-trip time to the other end, as far as the kernel knows; 0 where it
// does not.
func (c *QuickConn) RoundTrip() (rtt time.Duration) {
	if c.in != nil {
		_ = c.in.Control(func(fd uintptr) { rtt = roundTrip(fd) })
	}
	return rtt
}

// Traffic returns the bytes that were received and sent.
func (c *QuickConn) Traffic() (received, sent int64) { return c.received.Load(), c.sent.Load() }

// HungUp reports whether the other end has ended the connection, with nothing left to read.
func (c *QuickConn) HungUp() (ended bool) {
	if other, ok := c.Conn.(interface{ HungUp() bool }); ok {
		return other.HungUp()
	}
	conn, ok := c.Conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := conn.SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) {
			n, _, failure := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			ended = n == 0 && failure == nil || failure == syscall.ECONNRESET
		})
	}
	return ended && err == nil
}

// Read reads. Before it waits it acknowledges the received data; the kernel soon forgets an earlier
// QuickAck.
func (c *QuickConn) Read(p []byte) (n int, err error) {
	if c.in == nil || c.flows || len(p) == 0 {
		n, err = c.Conn.Read(p)
	} else {
		n, err = c.read(p)
	}
	c.flows = n >= short
	c.received.Add(int64(n))
	return n, err
}

func (c *QuickConn) read(p []byte) (n int, err error) {
	refused := false
	failure := c.in.Read(func(fd uintptr) bool {
		if n, err = readNow(fd, p); err != errWait {
			return true
		}
		refused = QuickAck(fd) != nil
		return refused
	})
	switch {
	case refused || failure != nil:
		c.in = nil
		return c.Conn.Read(p)
	case err != nil:
		return 0, c.failed("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

// Write writes all of p.
func (c *QuickConn) Write(p []byte) (written int, err error) {
	defer func() { c.sent.Add(int64(written)) }()
	if c.out == nil || len(p) == 0 || len(p) >= short {
		return c.Conn.Write(p)
	}
	failure := c.out.Write(func(fd uintptr) bool {
		for err == nil && written < len(p) {
			var n int
			n, err = WriteNow(fd, p[written:])
			written += n
		}
		if err == errWait {
			err = nil
			return false
		}
		return true
	})
	switch {
	case failure != nil: // as net words it
		n, err := c.Conn.Write(p[written:])
		return written + n, err
	case err != nil:
		return written, c.failed("write", err)
	}
	return written, nil
}

// failed returns an error worded like those of package net.
func (c *QuickConn) failed(what string, err error) error {
	local, remote := c.LocalAddr(), c.RemoteAddr()
	return &net.OpError{Op: what, Net: remote.Network(), Source: local, Addr: remote, Err: os.NewSyscallError(what, err)}
}
