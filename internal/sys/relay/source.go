//go:build linux

package relay

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/quickack"
)

// source is where a direction's bytes come from; read also says when they arrived.
type source interface {
	read(b []byte) (n int, arrived time.Time, err error)
}

// source reads as the path needs it.
func (c *carrier) source(from net.Conn) source {
	if c.relay.opts.Prompt {
		return clocked{quickack.New(from)}
	}
	if tcp, ok := from.(*net.TCPConn); ok && (c.relay.opts.Path.Delay > 0 || c.relay.opts.Watch != nil) {
		if s, err := newStamped(tcp); err == nil {
			return s
		}
	}
	return clocked{from}
}

// clocked says when it had read.
type clocked struct{ from io.Reader }

func (c clocked) read(b []byte) (n int, arrived time.Time, err error) {
	n, err = c.from.Read(b)
	return n, time.Now(), err
}

// stamped says when the kernel had the last of the bytes (Linux, Documentation
// networking/timestamping: SOF_TIMESTAMPING_RX_SOFTWARE): a reader that wakes up late
// delays nothing.
type stamped struct {
	raw     syscall.RawConn
	control []byte
}

func newStamped(tcp *net.TCPConn) (*stamped, error) {
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil, err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	})
	return &stamped{raw, make([]byte, unix.CmsgSpace(int(unsafe.Sizeof(unix.ScmTimestamping{}))))}, errors.Join(err, failed)
}

func (s *stamped) read(b []byte) (n int, arrived time.Time, err error) {
	var control int
	var failed error
	err = s.raw.Read(func(fd uintptr) bool {
		for {
			if n, control, _, _, failed = unix.Recvmsg(int(fd), b, s.control, unix.MSG_DONTWAIT); failed != unix.EINTR {
				return failed != unix.EAGAIN
			}
		}
	})
	now := time.Now()
	switch {
	case err != nil:
		return 0, now, err
	case failed != nil:
		return 0, now, os.NewSyscallError("recvmsg", failed)
	case n == 0:
		return 0, now, io.EOF
	}
	return n, stampIn(s.control[:control], now), nil
}

// latest is how late a reader may be: beyond that, somebody has set the clock.
const latest = 100 * time.Millisecond

// stampIn is the time in control messages, if it makes sense; else it is now.
func stampIn(control []byte, now time.Time) time.Time {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return now
	}
	for _, m := range messages {
		if m.Header.Level != unix.SOL_SOCKET || m.Header.Type != unix.SO_TIMESTAMPING || len(m.Data) < int(unsafe.Sizeof(unix.Timespec{})) {
			continue
		}
		stamp := *(*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
		late := time.Duration(now.UnixNano() - stamp.Nano()) // both by the wall clock
		if late > 0 && late < latest {
			return now.Add(-late)
		}
	}
	return now
}
