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
	least    int // limit never falls below
	most     int // or rises above
	vegas    sched.Vegas
}

const (
	// leastChunks keep a server busy while the next one is in flight.
	leastChunks = 2
	// mostData is twice the window of sshd's channels (channels.h, CHAN_SES_WINDOW_DEFAULT).
	mostData = 4 << 20
)

func (w *window) init(chunk int) {
	w.change.L = &w.mu
	w.least, w.most = leastChunks*chunk, mostData
	w.limit = w.least
}

// enter waits until size more bytes may be in flight, and returns how many are then. idle is called
// before it waits.
func (w *window) enter(size int, idle func()) int {
	w.mu.Lock()
	defer w.mu.Unlock()
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
		w.limit = min(estimate+w.least, w.most)
		w.change.Broadcast()
	}
}
