//go:build linux

package relay

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// segment is a TCP segment on Ethernet.
	segment = 1448
	// leastStall is the delay by a loss, unless Loss sets it: TCP_RTO_MIN.
	leastStall = 200 * time.Millisecond
	// leastOnTheWay and mostOnTheWay bound the capacity of a direction of a connection whose rate
	// is not limited: a sender of more waits, like one whose window is full.
	leastOnTheWay, mostOnTheWay = 4 << 20, 256 << 20
	// wide in bytes per second is more than anything sends over a path without a rate.
	wide = 1e9
	// queued is how long bytes wait in front of a busy link, in a router of a usual size: later
	// ones find no room.
	queued = 50 * time.Millisecond
	// together is the time on the link of bytes that enter it at once.
	together = 500 * time.Microsecond
)

// link is shared by all connections of a relay in one direction: a rate.
type link struct {
	mu   sync.Mutex
	free time.Time // it has sent everything before
}

// pass returns the time when n bytes that come now have passed the link.
func (l *link) pass(now time.Time, n int, rate float64) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free.Before(now) {
		l.free = now
	}
	l.free = l.free.Add(time.Duration(float64(n) / rate * float64(time.Second)))
	return l.free
}

// schedule is one direction of a connection's path: it computes when bytes arrive.
type schedule struct {
	path Path
	link *link
	last time.Time // arrival of the last bytes: nothing may overtake them
	dice *rand.Rand
}

func newSchedule(p Path, dir Direction, l *link) *schedule {
	r := &schedule{path: p, link: l}
	if p.Loss.Share > 0 {
		r.dice = rand.New(rand.NewPCG(p.Loss.Seed, uint64(dir)))
	}
	return r
}

// room returns how many bytes may be in flight.
func (r *schedule) room() int {
	if r.path.Rate == 0 {
		return min(max(leastOnTheWay, int(2*wide*r.path.Delay.Seconds())), mostOnTheWay)
	}
	return max(2*capacity, int(r.path.Rate*(2*r.path.Delay+queued).Seconds()))
}

// piece returns how many bytes leave at once: the first of them would be too late if the last of
// them came much later over the link.
func (r *schedule) piece() int {
	if r.path.Rate == 0 {
		return capacity
	}
	return max(segment, min(capacity, int(r.path.Rate*together.Seconds())))
}

// due returns the time when n bytes that came now are to leave.
func (r *schedule) due(now time.Time, n int) time.Time {
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

// stall returns the delay by losses among n bytes. One retransmission brings all of them.
func (r *schedule) stall(n int) time.Duration {
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
