//go:build linux

package drive

import (
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/measure/flow"
	"sshpace/internal/sys/proc"
)

// mover moves payload.
type mover struct {
	payload *flow.Payload
	null    int
	limit   time.Duration // how long a stream may stand still
	stopped time.Duration // how long we stood still during a slice
}

// standstill is how much later than asked for a nap must end to be one. A busy
// machine delays it by some tens of milliseconds.
const standstill = 500 * time.Millisecond

// nap sleeps, and notes if that took much too long, by a clock that runs on while
// the machine is suspended.
func (m *mover) nap(d time.Duration) {
	before := sinceBoot()
	proc.Nap(d)
	if late := sinceBoot() - before - d; late > standstill {
		m.stopped += late
	}
}

// pause is the error of a slice in which we stood still.
func (m *mover) pause() error {
	if m.stopped == 0 {
		return nil
	}
	return &Pause{m.stopped}
}

func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
