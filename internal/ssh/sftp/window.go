package sftp

import (
	"sync"
	"time"

	"sshpace/internal/base/sched"
)

// window bounds the bytes in flight: data that waits at the server is expensive for it (see
// ssh/channel), and ssh(1), if it carries us, sends all that it may.
type window struct {
	mu       sync.Mutex
	change   sync.Cond
	inFlight int // bytes of data in flight
	limit    int // limit of inUse
	most     int // limit never rises above
	vegas    sched.Vegas
}

// least keeps a server busy while the next request is in flight.
const least = 2 * MaxChunk

func (w *window) init(most int) {
	w.change.L = &w.mu
	w.most = most
}

// begin sets the first limit, by the answers to requests without data.
func (w *window) begin() {
	w.limit = min(max(least, int(sched.UsualRate*w.vegas.Quickest().Seconds())), w.most)
}

// enter waits until size more bytes may be in flight, and returns how many are then. idle is called
// before it waits.
func (w *window) enter(size int, idle func()) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.limit == 0 {
		w.begin()
	}
	if w.full(size) {
		w.mu.Unlock()
		idle()
		w.mu.Lock()
	}
	for w.full(size) {
		w.change.Wait()
	}
	w.inFlight += size
	return w.inFlight
}

func (w *window) full(size int) bool { return w.inFlight > 0 && w.inFlight+size > w.limit }

// leave records that size bytes are no longer in flight.
func (w *window) leave(size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inFlight -= size
	w.change.Broadcast()
}

// learn sets the limit by a reply to size bytes that took took, while inFlight bytes were in flight
// at its beginning.
func (w *window) learn(size, inFlight int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	estimate := w.vegas.BestInFlight(inFlight, took)
	if size > 0 {
		w.limit = min(estimate+least, w.most)
		w.change.Broadcast()
	}
}

// hasRoom reports whether size more bytes may be in flight now.
func (w *window) hasRoom(size int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit == 0 || !w.full(size)
}

// path returns what is known about the path.
func (w *window) path() sched.Vegas {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.vegas
}
