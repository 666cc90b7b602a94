//go:build linux

package relay

import (
	"math/rand/v2"
	"sync"
	"time"
)

// link is what all connections of a relay share in one direction: a rate.
type link struct {
	mu   sync.Mutex
	free time.Time // it has sent all before
}

// pass is when n bytes that come now have gone over the link.
func (l *link) pass(now time.Time, n int, rate float64) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / rate * float64(time.Second)))
	return l.free
}

// road is one direction of a connection's path: it knows when bytes arrive.
type road struct {
	path Path
	link *link
	last time.Time // nothing may overtake what arrives then
	dice *rand.Rand
}

func newRoad(p Path, dir Direction, l *link) *road {
	r := &road{path: p, link: l}
	if p.Loss.Share > 0 {
		r.dice = rand.New(rand.NewPCG(p.Loss.Seed, uint64(dir)))
	}
	return r
}

// room is how many bytes may be on the way.
func (r *road) room() int {
	if r.path.Rate == 0 {
		return onTheWay
	}
	return max(2*piece, int(r.path.Rate*(2*r.path.Delay+waiting).Seconds()))
}

// due is when n bytes that came now are to leave.
func (r *road) due(now time.Time, n int) time.Time {
	at := now
	if r.path.Rate > 0 {
		at = r.link.pass(now, n, r.path.Rate)
	}
	at = at.Add(r.path.Delay + r.stall(n))
	if at.Before(r.last) {
		at = r.last
	}
	r.last = at
	return at
}

// stall is what losses among n bytes cost. One retransmission brings all of them.
func (r *road) stall(n int) time.Duration {
	if r.dice == nil {
		return 0
	}
	lost := false
	for ; n > 0; n -= segment {
		lost = r.dice.Float64() < r.path.Loss.Share || lost
	}
	switch {
	case !lost:
		return 0
	case r.path.Loss.Stall > 0:
		return r.path.Loss.Stall
	}
	return leastStall
}

// queue holds what is on the way: so many bytes at most, and one parcel at least.
type queue struct {
	mu      sync.Mutex
	changed *sync.Cond
	parcels []parcel
	held    int
	room    int
	closed  bool
}

func newQueue(room int) *queue {
	q := &queue{room: room}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// put waits until there is room.
func (q *queue) put(p parcel) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.held > 0 && q.held+len(p.data) > q.room {
		q.changed.Wait()
	}
	q.parcels, q.held = append(q.parcels, p), q.held+len(p.data)
	q.changed.Signal()
}

// take returns the next parcel; false when there will be no more.
func (q *queue) take() (parcel, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.parcels) == 0 && !q.closed {
		q.changed.Wait()
	}
	if len(q.parcels) == 0 {
		return parcel{}, false
	}
	p := q.parcels[0]
	q.parcels, q.held = q.parcels[1:], q.held-len(p.data)
	q.changed.Signal()
	return p, true
}

// few reports whether what waits is a conversation, and no transfer.
func (q *queue) few() bool {
	const most = 8 * segment
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.held <= most
}

// close ends the queue: what is in it is still taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.changed.Signal()
}
