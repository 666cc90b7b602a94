package tcp

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// direct: this system has calls that do not wait.
const direct = true

// errWait is the error of a call that would have to wait.
const errWait = unix.EAGAIN

// QuickAck acknowledges the received data now. The kernel forgets the option after a few packets
// (tcp(7), TCP_QUICKACK).
func QuickAck(fd uintptr) error {
	on := int32(1)
	_, _, err := unix.RawSyscall6(unix.SYS_SETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_QUICKACK, uintptr(unsafe.Pointer(&on)), unsafe.Sizeof(on), 0)
	if err != 0 {
		return err
	}
	return nil
}

// roundTrip returns the kernel's measurement, which it has as early as the answer to SYN.
func roundTrip(fd uintptr) time.Duration {
	info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return 0
	}
	return time.Duration(info.Rtt) * time.Microsecond
}

// readNow reads the available data.
func readNow(fd uintptr, p []byte) (int, error) {
	return now(unix.SYS_RECVFROM, fd, p, unix.MSG_DONTWAIT)
}

// WriteNow writes as much as there is room for, and does not wait: EAGAIN where there is none.
func WriteNow(fd uintptr, p []byte) (int, error) {
	return now(unix.SYS_SENDTO, fd, p, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
}

// now makes a call that does not wait, without telling Go's scheduler.
func now(call, fd uintptr, p []byte, flags uintptr) (int, error) {
	for {
		n, _, err := unix.RawSyscall6(call, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)), flags, 0, 0)
		switch err {
		case 0:
			return int(n), nil
		case unix.EINTR:
		default:
			return 0, err
		}
	}
}
