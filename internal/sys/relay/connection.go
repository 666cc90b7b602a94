//go:build linux

package relay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// connection is one connection through the relay: two sockets, and a lane in each direction.
type connection struct {
	relay   *Relay
	number  int
	life    context.Context
	end     context.CancelFunc
	in, out atomic.Int32 // nowhere: not yet connected
	cut     atomic.Bool

	mu    sync.Mutex
	lanes []*lane
}

func newConnection(r *Relay, in int) *connection {
	c := &connection{relay: r}
	c.in.Store(int32(in))
	c.out.Store(nowhere)
	c.life, c.end = context.WithCancel(r.life)
	return c
}

// Multiples of the delay after which a client and a server have the packets of TCP's handshake that
// let them begin.
const client, server = 2, 3

func (c *connection) run() {
	defer c.close()
	punctual()
	accepted := time.Now()
	var both sync.WaitGroup
	defer both.Wait()
	delay := c.relay.opts.Path.Delay
	both.Go(func() { punctual(); c.lane(Up, &c.in, &c.out, accepted.Add(client*delay)) })
	if !c.connect(accepted.Add(server * delay)) {
		c.reset()
		return
	}
	c.lane(Down, &c.out, &c.in, time.Now())
}

func (c *connection) lane(dir Direction, from, to *atomic.Int32, since time.Time) {
	l, err := newLane(c, dir, int(from.Load()), to, since)
	if err != nil {
		c.reset()
		return
	}
	c.mu.Lock()
	c.lanes = append(c.lanes, l)
	c.mu.Unlock()
	l.run()
}

// connect dials the server at the time then.
func (c *connection) connect(then time.Time) bool {
	if !sleepUntil(c.life, then) {
		return false
	}
	conn, err := c.relay.dial(c.life)
	if err != nil {
		return false
	}
	out, err := detached(conn)
	if err != nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.out.Store(int32(out))
	for _, l := range c.lanes {
		l.rouse()
	}
	return true
}

// reset ends both directions; data in flight is lost.
func (c *connection) reset() {
	c.end()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut.Store(true)
	for _, l := range c.lanes {
		l.rouse()
	}
}

// close closes both ends: with a reset if the connection was cut, otherwise in order, so that
// written data still arrives.
func (c *connection) close() {
	c.end()
	c.relay.mu.Lock()
	delete(c.relay.conns, c)
	c.relay.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range c.lanes {
		_ = unix.Close(l.wake)
	}
	c.lanes = nil
	for _, end := range []int{int(c.in.Load()), int(c.out.Load())} {
		if end == nowhere {
			continue
		}
		if c.cut.Load() {
			abort(end)
		}
		_ = unix.Close(end)
	}
}
