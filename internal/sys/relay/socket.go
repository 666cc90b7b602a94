//go:build linux

package relay

import (
	"net"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/tcp"
)

// nowhere is the descriptor of an absent socket.
const nowhere = -1

// detached takes the socket of a connection away from Go's poller, which each byte would wake for
// nothing otherwise.
func detached(conn net.Conn) (fd int, err error) {
	defer conn.Close()
	raw, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return nowhere, err
	}
	var failed error
	if err = raw.Control(func(its uintptr) { fd, failed = unix.FcntlInt(its, unix.F_DUPFD_CLOEXEC, 0) }); err == nil {
		err = failed
	}
	return fd, err
}

// abort makes a socket end with a reset instead of an orderly end, once it is closed.
func abort(fd int) {
	_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
}

// acknowledge acknowledges the next data at once.
func acknowledge(fd int) { _ = tcp.QuickAck(uintptr(fd)) }

// Calls that do not wait are raw: Go's scheduler does not have to know of them.

// receive reads the available data, with control messages; EAGAIN: nothing.
func receive(fd int, into, room []byte) (n int, control []byte, err error) {
	vector := unix.Iovec{Base: &into[0]}
	vector.SetLen(len(into))
	for {
		message := unix.Msghdr{Iov: &vector, Control: &room[0]}
		message.Iovlen = 1
		message.SetControllen(len(room))
		n, _, failed := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&message)), unix.MSG_DONTWAIT)
		if failed == 0 {
			return int(n), room[:message.Controllen], nil
		}
		if failed != unix.EINTR {
			return 0, nil, failed
		}
	}
}

// stamped lets the kernel report when it got the last of the bytes that are read (Linux,
// Documentation networking/timestamping: SOF_TIMESTAMPING_RX_SOFTWARE): then a reader that wakes up
// late delays nothing. It returns room for that.
func stamped(fd int) []byte {
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, unix.SOF_TIMESTAMPING_RX_SOFTWARE|unix.SOF_TIMESTAMPING_SOFTWARE)
	return make([]byte, unix.CmsgSpace(int(unsafe.Sizeof(unix.ScmTimestamping{}))))
}

// latest is the most that a reader can be late: beyond that, somebody has set the clock.
const latest = 100 * time.Millisecond

// stampIn returns the time in control messages, if it makes sense; otherwise now.
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
