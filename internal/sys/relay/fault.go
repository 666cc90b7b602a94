//go:build linux

package relay

import (
	"sync/atomic"
	"time"
)

// Fault ends the server's data in the middle. The client's data still arrives, until the client
// hears of the end or gives up.
type Fault struct {
	After int           // bytes that still reach the client
	How   End           // the kind of end
	Later time.Duration // delay after the first lost byte
}

// End is the kind of end that a client sees.
type End uint8

// The ends.
const (
	Silence End = iota // none
	Finish             // FIN: in order
	Reset              // RST
)

// Fail injects a fault into the connection whose server sends next, and no other one.
func (r *Relay) Fail(f Fault) { r.fault.Store(&fault{Fault: f}) }

// fault is a Fault that waits for its connection, or has begun there.
type fault struct {
	Fault
	of    atomic.Pointer[connection]
	begun bool
}

// mine reports whether the fault applies to a connection.
func (f *fault) mine(c *connection) bool {
	return f != nil && (f.of.CompareAndSwap(nil, c) || f.of.Load() == c)
}

// spared returns the part of the server's bytes that still reaches the client, and the fault that
// begins after it. Only the lane to the client counts.
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
