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

// waking is how long a sleeper usually needs to wake up.
const waking = 150 * time.Microsecond

// sleepUntil sleeps to within some microseconds; false when life ends first,
// which is looked at now and then. Go's own timers would be late by up to a
// millisecond where the process is idle, and by more where the machine is not. To be
// exact it stays awake in the end, which is for a few bytes that somebody waits for:
// where many follow, the core is better left to others.
func sleepUntil(life context.Context, when time.Time, exact bool) bool {
	const look = 50 * time.Millisecond
	early := time.Duration(0)
	if exact {
		early = waking
	}
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
