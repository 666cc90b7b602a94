package sftp

import (
	"sync"
	"time"

	"sshpace/internal/base/sched"
)

// window bounds the data that are under way: what a server has not come to yet costs it
// dearly, see ssh/channel, and ssh(1) where that carries us sends all that it may.
type window struct {
	mu     sync.Mutex
	change sync.Cond
	under  int // bytes of data under way
	limit  int // what may be
	least  int // limit never falls below
	most   int // or rises above
	way    sched.Vegas
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
// were under way at its beginning.
func (w *window) learn(size, under int, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	worth := w.way.Worth(under, took)
	if size > 0 {
		w.limit = min(worth+w.least, w.most)
		w.change.Broadcast()
	}
}
