//go:build linux

package relay

import (
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

const (
	// piece is how much is read at once.
	piece = 64 << 10
	// segment is a TCP segment on Ethernet.
	segment = 1448
	// leastStall is what a loss costs where nothing else is said: TCP_RTO_MIN.
	leastStall = 200 * time.Millisecond
	// onTheWay is how much a direction of a connection holds where the rate is not
	// limited; a reader with more waits, as a sender does whose window is full.
	onTheWay = 4 << 20
	// waiting is how long bytes wait in front of a link that is busy, in a router of
	// a usual size: those that come then find no room.
	waiting = 50 * time.Millisecond
)

// parcel is bytes on their way. No bytes are the end of the direction.
type parcel struct {
	data    []byte
	buffer  *[piece]byte
	arrived time.Time
	due     time.Time
}

// packed is a parcel of what was read. A few bytes do not keep a large buffer: many
// of them may be on the way.
func packed(b *[piece]byte, n int, arrived, due time.Time) parcel {
	const few = piece / 8
	if n > few {
		return parcel{b[:n], b, arrived, due}
	}
	defer buffers.Put(b)
	return parcel{slices.Clone(b[:n]), nil, arrived, due}
}

var buffers = sync.Pool{New: func() any { return new([piece]byte) }}

// carry moves one direction until it ends, to where to says: nil is nowhere. A
// path that neither delays nor limits needs no second goroutine, whose wake-ups
// would be most of what it costs.
func (c *carrier) carry(dir Direction, from net.Conn, to func() net.Conn) {
	source := c.source(from)
	road := newRoad(c.relay.opts.Path, dir, &c.relay.links[dir])
	if c.relay.opts.Path == (Path{}) {
		target := to()
		for target != nil && c.fetch(source, road, func(p parcel) bool { return c.deliver(dir, target, p) }) {
		}
		return
	}
	q := newQueue(road.room())
	var writer sync.WaitGroup
	writer.Go(func() { c.empty(dir, q, to()) })
	for c.fetch(source, road, func(p parcel) bool { q.put(p); return true }) {
	}
	q.close()
	writer.Wait()
}

// empty delivers what is queued, each parcel when it is due.
func (c *carrier) empty(dir Direction, q *queue, to net.Conn) {
	punctual()
	var s sleeper
	for p, ok := q.take(); ok; p, ok = q.take() {
		if to == nil || !s.until(c.relay.life, p.due, q.few()) || !c.deliver(dir, to, p) {
			c.reset() // wakes the reader
		}
	}
}

// fetch reads once and hands the parcel on; false at the end.
func (c *carrier) fetch(from source, road *road, hand func(parcel) bool) bool {
	b := buffers.Get().(*[piece]byte)
	n, now, err := from.read(b[:])
	if n > 0 && c.relay.frozen.Load() {
		n = 0
		buffers.Put(b)
	} else if n > 0 && !hand(packed(b, n, now, road.due(now, n))) {
		return false
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
		watch(Seen{c.number, dir, p.arrived, p.due, time.Now(), p.data})
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
