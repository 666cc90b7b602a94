//go:build linux

package flow

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/proc"
)

// pacer decides how long a flow sleeps between two system calls. A flow that wakes up for every
// write of the other side costs two context switches per 32 KiB, a quarter of SSH's own cost with a
// fast cipher; one that lets a wide pipe fill, or drain, to about a half costs a third of that, and
// spares the other side the wake-ups.
type pacer struct {
	capacity int // of the pipe in bytes
	sleep    time.Duration
}

const (
	minSleep = 20 * time.Microsecond
	maxSleep = 4 * time.Millisecond
)

// newPacer returns a pacer for a pipe; ok is false where the pipe is so narrow that sleeping would
// hold the stream up.
func newPacer(capacity int) (p *pacer, ok bool) {
	return &pacer{capacity: capacity, sleep: minSleep}, capacity >= chunk
}

// after adapts to the part of the pipe that the last call moved, and sleeps.
func (p *pacer) after(moved int) {
	switch {
	case moved > p.capacity*2/3:
		p.sleep /= 2
	case moved > p.capacity/2:
		p.sleep -= p.sleep / 8
	case moved < p.capacity*2/5:
		p.sleep += p.sleep/8 + time.Microsecond
	}
	p.sleep = min(max(p.sleep, minSleep), maxSleep)
	proc.Nap(p.sleep)
}

// The system calls below bypass Go's scheduler, which has nothing else to run in a flow process and
// would start threads to find that out. So none of them may block: where nothing can be moved they
// return EAGAIN.

// splice moves up to n bytes from a pipe to another file (splice(2)).
func splice(from, to, n int) (int, error) {
	moved, _, errno := unix.RawSyscall6(unix.SYS_SPLICE, uintptr(from), 0, uintptr(to), 0, uintptr(n), unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
	if errno != 0 {
		return 0, errno
	}
	return int(moved), nil
}

// lend puts the pages of b into the pipe fd (vmsplice(2)); only the reader copies them.
func lend(fd int, b []byte) (int, error) {
	iov := unix.Iovec{Base: &b[0]}
	iov.SetLen(len(b))
	moved, _, errno := unix.RawSyscall6(unix.SYS_VMSPLICE, uintptr(fd), uintptr(unsafe.Pointer(&iov)), 1, unix.SPLICE_F_NONBLOCK, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(moved), nil
}
