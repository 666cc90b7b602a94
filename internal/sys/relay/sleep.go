//go:build linux

package relay

import (
	"context"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// punctual gives the caller a thread of its own that wakes up on time: without
// the slack that the kernel allows itself, and before other programs where the
// user may ask for that. On a busy machine a sleeper without this is late by the
// other programs' time slices, milliseconds. The thread ends with the goroutine.
func punctual() {
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	priority := int32(1) // struct sched_param
	const myself = 0
	_, _, _ = unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, myself, unix.SCHED_RR|unix.SCHED_RESET_ON_FORK, uintptr(unsafe.Pointer(&priority)))
}

// A sleeper who stays awake in the end is on time however late the kernel would
// have woken it: on a guest of a busy host that is a millisecond in one case of a hundred.
// It may be awake for a part of the time only.
const (
	awake   = time.Millisecond
	portion = 8
)

// sleeper sleeps until one moment after the other.
type sleeper struct{ last time.Time }

// until sleeps to within some microseconds; false when life ends first, which is
// looked at now and then. Go's own timers would be late by up to a millisecond where
// the process is idle, and by more where the machine is not. Exact is for a few bytes
// that somebody waits for: where many follow, the core is better left to others.
func (s *sleeper) until(life context.Context, when time.Time, exact bool) bool {
	const look = 50 * time.Millisecond
	early := time.Duration(0)
	if exact {
		early = min(awake, max(0, when.Sub(s.last)/portion))
	}
	s.last = when
	for {
		rest := min(time.Until(when)-early, look)
		if life.Err() != nil {
			return false
		}
		if rest <= 0 {
			break
		}
		ts := unix.NsecToTimespec(int64(rest))
		_ = unix.Nanosleep(&ts, nil)
	}
	for time.Until(when) > 0 {
	}
	return true
}
