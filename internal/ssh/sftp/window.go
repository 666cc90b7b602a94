package sftp

import (
	"sync"
	"time"
)

// window bounds the data that are under way, as TCP Vegas does: what a server has
// not come to yet costs it dearly (sshd keeps it in one buffer, which it enlarges,
// clears and moves: a third of its CPU time at 2 MiB), and makes nothing faster
// than what one more round trip needs.
type window struct {
	mu       sync.Mutex
	change   sync.Cond
	under    int // bytes of data under way
	limit    int // what may be
	least    int // limit never falls below
	most     int // or rises above
	quickest time.Duration
}

const (
	// leastChunks keep a server busy while the next one is on its way.
	leastChunks = 2
	// mostData is twice the window of sshd's channels (channels.h,
	// CHAN_SES_WINDOW_DEFAULT).
	mostData = 4 << 20
)

func (w *window) init(chunk int) {
	w.change.L = &w.mu
	w.least, w.most = leastChunks*chunk, mostData
	w.limit = w.least
}

// enter waits until size bytes may be under way, and tells how many are then. idle
// is called before it waits.
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
	w.under += size
	return w.under
}

func (w *window) full(size int) bool { return w.under > 0 && w.under+size > w.limit }

// leave says that size bytes are not under way any more.
func (w *window) leave(size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.under -= size
	w.change.Broadcast()
}

// learn sets the limit by a reply to size bytes that took so long, when under bytes
// were under way at its beginning. The quickest of all replies is what the way alone
// takes; twice what arrives in that time is enough to have under way.
func (w *window) learn(size, under int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.quickest == 0 || took < w.quickest {
		w.quickest = max(took, 1)
	}
	if size > 0 {
		arrived := float64(under) * float64(w.quickest) / float64(max(took, 1))
		w.limit = min(int(2*arrived)+w.least, w.most)
		w.change.Broadcast()
	}
}
