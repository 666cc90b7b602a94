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

// sleepUntil sleeps to within some microseconds; false when life ends first,
// which is looked at now and then. Go's own timers would be late by up to a
// millisecond where the process is idle, and by more where the machine is not.
func sleepUntil(life context.Context, when time.Time) bool {
	const look = 50 * time.Millisecond
	for {
		rest := min(time.Until(when), look)
		if rest <= 0 || life.Err() != nil {
			return life.Err() == nil
		}
		ts := unix.NsecToTimespec(int64(rest))
		_ = unix.Nanosleep(&ts, nil)
	}
}
