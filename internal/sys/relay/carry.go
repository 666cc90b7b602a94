package relay

import (
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"time"

	"sshpace/internal/sys/quickack"
)

const (
	// piece is how much is read at once.
	piece = 64 << 10
	// segment is a TCP segment on Ethernet.
	segment = 1448
	// leastStall is what a loss costs where nothing else is said: TCP_RTO_MIN.
	leastStall = 200 * time.Millisecond
	// onTheWay is how much a direction holds at least; a reader with more waits,
	// as a sender does whose window is full.
	onTheWay = 4 << 20
)

// parcel is bytes on their way. No bytes are the end of the direction.
type parcel struct {
	data    []byte
	buffer  *[piece]byte
	arrived time.Time
	due     time.Time
}

var buffers = sync.Pool{New: func() any { return new([piece]byte) }}

// carry moves one direction until it ends, to where to says: nil is nowhere. A
// path that neither delays nor limits needs no second goroutine, whose wake-ups
// would be most of what it costs.
func (c *carrier) carry(dir Direction, from net.Conn, to func() net.Conn) {
	source := io.Reader(from)
	if c.relay.opts.Prompt {
		source = quickack.New(from)
	}
	road := newRoad(c.relay.opts.Path, dir)
	if c.relay.opts.Path == (Path{}) {
		target := to()
		for target != nil && c.fetch(source, road, func(p parcel) bool { return c.deliver(dir, target, p) }) {
		}
		return
	}
	queue := make(chan parcel, road.room())
	var writer sync.WaitGroup
	writer.Go(func() { c.empty(dir, queue, to()) })
	for c.fetch(source, road, func(p parcel) bool { queue <- p; return true }) {
	}
	close(queue)
	writer.Wait()
}

// empty delivers what is queued, each parcel when it is due.
func (c *carrier) empty(dir Direction, queue <-chan parcel, to net.Conn) {
	punctual()
	for p := range queue {
		if to == nil || !sleepUntil(c.relay.life, p.due) || !c.deliver(dir, to, p) {
			c.reset() // wakes the reader
		}
	}
}

// fetch reads once and hands the parcel on; false at the end.
func (c *carrier) fetch(from io.Reader, road *road, hand func(parcel) bool) bool {
	b := buffers.Get().(*[piece]byte)
	n, err := from.Read(b[:])
	now := time.Now()
	if n > 0 && c.relay.frozen.Load() {
		n = 0
		buffers.Put(b)
	} else if n > 0 {
		if !hand(parcel{b[:n], b, now, road.due(now, n)}) {
			return false
		}
	}
	if err == io.EOF {
		hand(parcel{arrived: now, due: road.due(now, 0)})
	} else if err != nil {
		c.reset()
	}
	return err == nil
}

// deliver writes a parcel, or ends the direction with an empty one.
func (c *carrier) deliver(dir Direction, to net.Conn, p parcel) bool {
	var err error
	if len(p.data) == 0 {
		err = endWrite(to)
	} else {
		_, err = to.Write(p.data)
	}
	if watch := c.relay.opts.Watch; watch != nil && err == nil {
		watch(Seen{c.number, dir, p.arrived, time.Now(), p.data})
	}
	if p.buffer != nil {
		buffers.Put(p.buffer)
	}
	if err != nil {
		c.reset()
	}
	return err == nil
}

func endWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}

// road is one direction of a path: it knows when the bytes before have passed.
type road struct {
	path Path
	free time.Time // the slowest link has sent all before
	last time.Time // nothing may overtake what arrives then
	dice *rand.Rand
}

func newRoad(p Path, dir Direction) *road {
	r := &road{path: p}
	if p.Loss.Share > 0 {
		r.dice = rand.New(rand.NewPCG(p.Loss.Seed, uint64(dir)))
	}
	return r
}

// room is how many pieces may be on the way: what fits on the path twice.
func (r *road) room() int {
	held := max(onTheWay, int(2*r.path.Rate*r.path.Delay.Seconds()))
	return held / piece
}

// due is when n bytes that came now are to leave.
func (r *road) due(now time.Time, n int) time.Time {
	start := now
	if r.path.Rate > 0 {
		if r.free.After(start) {
			start = r.free
		}
		start = start.Add(time.Duration(float64(n) / r.path.Rate * float64(time.Second)))
		r.free = start
	}
	at := start.Add(r.path.Delay + r.stall(n))
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
