package admit

import (
	"context"
	"sync"
	"time"
)

// window is a first-come-first-served semaphore whose size learns.
type window struct {
	mu        sync.Mutex
	limit     float64 // at least floor, at most top
	floor     float64
	top       float64
	slowStart bool    // grows fast: until something was turned away
	grown     bool    // there was a success
	ceiling   float64 // as far as it grows, after a cut; 0 = top
	probe     int     // logins that must succeed for the ceiling to rise
	succeeded int     // since it was made or since a cut
	active    int
	released  time.Time       // when a slot was given back last
	queue     []chan struct{} // waiters, oldest first; closed = admitted
}

func (w *window) acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.mu.Lock()
	if w.active < int(w.limit) && len(w.queue) == 0 {
		w.active++
		w.mu.Unlock()
		return nil
	}
	waiter := make(chan struct{})
	w.queue = append(w.queue, waiter)
	w.mu.Unlock()

	select {
	case <-waiter:
		return nil
	case <-ctx.Done():
		w.leave(waiter)
		return context.Cause(ctx)
	}
}

// leave takes a waiter out of the queue, or gives back the slot that it received meanwhile.
func (w *window) leave(waiter chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, q := range w.queue {
		if q == waiter {
			w.queue = append(w.queue[:i], w.queue[i+1:]...)
			return
		}
	}
	w.active--
	w.wake()
}

// retake takes a slot whether or not there is room.
func (w *window) retake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active++
}

func (w *window) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active, w.released = w.active-1, time.Now()
	w.wake()
}

// lastRelease returns the time when a slot was given back last.
func (w *window) lastRelease() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.released
}

// accepted reports whether a login has succeeded.
func (w *window) accepted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grown
}

// wake admits waiters while there is room. The caller holds mu.
func (w *window) wake() {
	for len(w.queue) > 0 && w.active < int(w.limit) {
		w.active++
		close(w.queue[0])
		w.queue[0] = nil
		w.queue = w.queue[1:]
	}
}

// grow makes the window larger for a success.
func (w *window) grow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	step := 1.0
	if !w.slowStart {
		step = 1 / w.limit
	}
	w.limit, w.grown = min(w.limit+step, w.bound()), true
	w.wake()
}

// bound is the largest allowed size. A size at which logins were turned away or late is tried again
// only now and then, each time later.
func (w *window) bound() float64 {
	if w.ceiling == 0 {
		return w.top
	}
	return min(w.ceiling, w.top)
}

// success counts a login that succeeded.
func (w *window) success() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.succeeded++; w.ceiling > 0 && w.succeeded >= w.probe {
		w.ceiling, w.succeeded = w.ceiling+1, 0
	}
}

// size returns the size of the window, and how much of it is taken.
func (w *window) size() (limit float64, active int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit, w.active
}

// resize sets the window to an estimate of its best size, after a cut for logins that were turned
// away by one at a time; it is not lowered below floor.
func (w *window) resize(estimate, floor float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.slowStart {
		estimate = min(estimate, w.limit+1)
	}
	w.limit = min(max(estimate, min(floor, w.limit)), w.bound())
	w.wake()
}

// cut makes the window smaller, because a login was turned away.
func (w *window) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowStart = false
	w.remember(w.limit - 1)
	w.limit = max(w.limit*cutFactor, w.floor)
}

// narrow halves the number of simultaneous logins, one of which was late, down to one; the window
// grows again as fast as before, but not above that if it is to learn.
func (w *window) narrow(underWay int, learn bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = max(min(w.limit, float64(underWay))*cutFactor, 1)
	if learn {
		w.remember(w.limit)
	}
}

// remember bounds the growth. The caller holds mu.
func (w *window) remember(ceiling float64) {
	w.ceiling, w.succeeded = max(ceiling, 1), 0
	w.probe = max(2*w.probe, probeEvery*int(w.ceiling))
}

// forget discards what was learned and restarts at size.
func (w *window) forget(size float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit, w.ceiling, w.probe = min(size, w.top), 0, 0
	w.wake()
}
