//go:build linux

package relay

import (
	"sync/atomic"
	"time"
)

// Fault ends what a server says in the middle. What the client says still arrives, until
// the client hears of the end or gives up.
type Fault struct {
	After int           // bytes that still reach the client
	How   End           // how the end shows
	Later time.Duration // and how long after the first byte that is lost
}

// End is how a client sees the end of a connection.
type End uint8

// The ends.
const (
	Silence End = iota // it does not
	Finish             // FIN: in order
	Reset              // RST
)

// Fail has a fault befall the connection whose server speaks next, and no other one.
func (r *Relay) Fail(f Fault) { r.fault.Store(&fault{Fault: f}) }

// fault is one that waits for its connection, or goes on there.
type fault struct {
	Fault
	of    atomic.Pointer[connection]
	begun bool
}

// mine tells whether the fault befalls a connection.
func (f *fault) mine(c *connection) bool {
	return f != nil && (f.of.CompareAndSwap(nil, c) || f.of.Load() == c)
}

// spared is what of the server's bytes reaches the client, and the fault that begins
// behind it. Only the lane that brings them counts.
func (l *lane) spared(data []byte) ([]byte, *Fault) {
	f := l.connection.relay.fault.Load()
	if len(data) == 0 || l.dir != Down || !f.mine(l.connection) {
		return data, nil
	}
	if f.After >= len(data) {
		f.After -= len(data)
		return data, nil
	}
	data, f.After = data[:f.After], 0
	if f.begun {
		return data, nil
	}
	f.begun = true
	return data, &f.Fault
}
