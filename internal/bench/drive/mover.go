//go:build linux

package drive

import (
	"time"

	"sshpace/internal/bench/flow"
	"sshpace/internal/bench/lab"
	"sshpace/internal/sys/proc"
)

// mover moves payload.
type mover struct {
	payload *flow.Payload
	null    int
	limit   time.Duration // the longest time that a stream may stand still
	looked  time.Time     // the end of the last nap, or the begin of the slice
	stopped time.Duration // how long we stood still during a slice
	began   time.Time
	ahead   time.Duration // of the clock since boot, which runs on while the machine is suspended
	keeps   bool          // wide pipes: nothing limits them
}

func newMover(payload *flow.Payload, null int, limit time.Duration) *mover {
	return &mover{payload: payload, null: null, limit: limit, began: time.Now(), ahead: proc.SinceBoot(), keeps: flow.Unlimited()}
}

// Sizes of the pipes of a connection: wide during its turn, otherwise the default of pipe(7) where
// the pipes of a user are limited together.
const (
	widePipe   = 1 << 20
	narrowPipe = 64 << 10
)

// widen makes room in a stream, and returns how much can be in flight before somebody has to wait.
func (m *mover) widen(s *stream) int64 {
	if s.room > 0 {
		return s.room
	}
	room := int64(min(flow.Resize(flow.Descriptor(s.in), widePipe), flow.Resize(flow.Descriptor(s.out), widePipe)))
	if m.keeps {
		s.room = room
	}
	return room
}

// narrow gives the room back, unless it may be kept.
func (m *mover) narrow(s *stream) {
	if !m.keeps {
		flow.Resize(flow.Descriptor(s.in), narrowPipe)
		flow.Resize(flow.Descriptor(s.out), narrowPipe)
	}
}

// standstill is how much too late a nap, with the work before it, must end to count as a
// standstill. A busy machine delays that by some tens of milliseconds.
const standstill = 500 * time.Millisecond

// begin begins a slice: time that passed before it is not a standstill. It returns the time.
func (m *mover) begin() time.Time {
	m.looked = time.Now()
	return m.looked
}

// nap sleeps, and notes if much more time has passed since the last nap.
func (m *mover) nap(d time.Duration) {
	proc.Nap(d)
	now := time.Now()
	if late := now.Sub(m.looked) - d; late > standstill {
		m.stopped += late
	}
	m.looked = now
}

// pause ends a slice. It returns an error if this process stood still in it, or the machine did:
// then the clock that runs on while it is suspended is ahead of the others.
func (m *mover) pause() error {
	ahead := proc.SinceBoot() - time.Since(m.began)
	stopped := m.stopped
	if jump := ahead - m.ahead; jump > standstill {
		stopped += jump
	}
	m.stopped, m.ahead = 0, ahead
	if stopped == 0 {
		return nil
	}
	return &lab.Pause{For: stopped}
}
