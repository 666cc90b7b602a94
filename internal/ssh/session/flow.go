package session

import (
	"sync"
	"sync/atomic"
	"time"
)

// Flow keeps the output that waits inside x/crypto small. Its window is 2 MiB a
// channel and cannot be set; a thousand hosts that talk faster than our output
// takes it would need 2 GB. So while much has come in and was not taken yet, the
// connection is not read; TCP then holds the server up.
//
// What came in is counted in bytes of the connection, more than what can be
// taken. So when the taker waits although much seems to be there, it is the
// count that is wrong: it begins anew.
type Flow struct {
	backlog atomic.Int64 // bytes that came in and were not taken, about
	handing atomic.Int32 // pieces of output being handed over right now
	taken   atomic.Int64 // pieces taken so far

	wake chan struct{} // holds one: something was taken or handed over
	done chan struct{} // closed with the connection
	once sync.Once
}

const (
	// maxBacklog is how much may wait for one host.
	maxBacklog = 64 << 10
	// takeTime is more than a taker needs for what is there.
	takeTime = time.Millisecond
)

// NewFlow begins with nothing.
func NewFlow() *Flow { return &Flow{wake: make(chan struct{}, 1), done: make(chan struct{})} }

// Came counts what was read of the connection.
func (f *Flow) Came(n int) { f.backlog.Add(int64(n)) }

// Wait returns when more may be read. Only the reader calls it.
func (f *Flow) Wait() {
	for f.backlog.Load() > maxBacklog {
		if !f.again() {
			return
		}
	}
}

// again waits for the taker, and tells whether to look once more.
func (f *Flow) again() bool {
	taken := f.taken.Load()
	var idle <-chan time.Time // never, while output is being handed over
	if f.handing.Load() == 0 {
		t := time.NewTimer(takeTime)
		defer t.Stop()
		idle = t.C
	}
	select {
	case <-f.wake:
		return true
	case <-f.done:
		return false
	case <-idle:
		if f.taken.Load() == taken && f.handing.Load() == 0 {
			f.backlog.Store(0)
		}
		return true
	}
}

// begin says that n bytes were taken and are being handed over; empty that
// nothing more waited when they were taken.
func (f *Flow) begin(n int, empty bool) {
	if f == nil {
		return
	}
	f.handing.Add(1)
	f.taken.Add(1)
	if empty {
		f.backlog.Store(0)
	} else {
		f.backlog.Add(-int64(n))
	}
	f.nudge()
}

func (f *Flow) end() {
	if f == nil {
		return
	}
	f.handing.Add(-1)
	f.nudge()
}

// Stuck tells whether output is being handed over right now.
func (f *Flow) Stuck() bool { return f.handing.Load() > 0 }

func (f *Flow) nudge() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// Close ends a Wait.
func (f *Flow) Close() { f.once.Do(func() { close(f.done) }) }
