//go:build linux

// Package relay is a TCP relay on loopback that makes a short path long: it delays bytes each way,
// limits their rate, stalls them as a lost segment does, stops or cuts connections in the middle,
// and reports when which bytes went past. It needs no privilege, and the programs at both ends are
// the real ones.
//
// Its limit: TCP ends at the relay. Windows, retransmissions and acknowledgements belong to two
// short connections, so that a wait for an acknowledgement (Nagle's algorithm, RFC 896) takes as
// long as on loopback, and a transfer is never held up by TCP's window over the long path, only by
// the window of the program's own protocol.
//
// A connection opens as a distant one would: the third packet of TCP's handshake reaches a server
// after three times the delay, so that the relay connects then, and a first answer comes back after
// two round trips.
package relay

import (
	"context"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/sys/tcp"
)

// Path is the treatment of the bytes of each direction. The zero value passes them on at once.
type Path struct {
	Delay time.Duration // each way; a round trip takes twice as long
	Rate  float64       // bytes per second each way, of all connections together; 0 = unlimited
	Loss  Loss
}

// Loss delays bytes as a lost segment would: it and all after it wait for the retransmission.
// Segments are lost at random, the same ones for one Seed.
type Loss struct {
	Share float64       // of segments of 1448 bytes, 0 to 1
	Stall time.Duration // delay by a loss; 0 = 200 ms, Linux' shortest retransmission time
	Seed  uint64
}

// Options of a Relay.
type Options struct {
	Path Path
	// Watch is called for all bytes that have left, of both directions concurrently; nil watches
	// nothing.
	Watch func(Seen)
	// Prompt acknowledges at once, so that neither end waits for the relay where Nagle's algorithm
	// is on.
	Prompt bool
	// Listener accepts the clients; nil is a port of 127.0.0.1 for our own user. The relay closes
	// it.
	Listener net.Listener
}

// Relay carries connections to one server.
type Relay struct {
	dial     func(context.Context) (net.Conn, error)
	opts     Options
	listener net.Listener
	life     context.Context
	end      context.CancelFunc
	frozen   atomic.Bool
	fault    atomic.Pointer[fault]
	links    [2]link // by Direction

	mu    sync.Mutex
	conns map[*connection]bool
	count int
	done  sync.WaitGroup
}

// To relays every connection to a TCP address. The caller closes the relay.
func To(address string, o Options) (*Relay, error) {
	var d net.Dialer
	return start(func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }, o)
}

// start relays to the server by connections that dial makes.
func start(dial func(context.Context) (net.Conn, error), o Options) (*Relay, error) {
	listener := o.Listener
	if listener == nil {
		var err error
		if listener, err = tcp.ListenOwn(); err != nil {
			return nil, err
		}
	}
	r := &Relay{dial: dial, opts: o, listener: listener, conns: map[*connection]bool{}}
	r.life, r.end = context.WithCancel(context.Background())
	r.done.Go(r.accept)
	return r, nil
}

// Port returns the port of the relay.
func (r *Relay) Port() int { return r.listener.Addr().(*net.TCPAddr).Port }

// Freeze swallows all bytes from now on, like a pulled cable: connections stay open and nothing
// arrives any more.
func (r *Relay) Freeze() { r.frozen.Store(true) }

// Cut resets all connections, as a firewall does that has forgotten them.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.reset()
	}
}

// Close stops listening, resets open connections and waits for their end.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.end()
	r.Cut()
	r.done.Wait()
	return err
}

func (r *Relay) accept() {
	for in := range tcp.Accepted(r.listener) {
		r.carry(in)
	}
}

// carry begins to relay a connection.
func (r *Relay) carry(in net.Conn) {
	fd, err := detached(in)
	if err != nil {
		return
	}
	c := newConnection(r, fd)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	c.number = r.count
	r.conns[c] = true
	r.done.Go(c.run)
}

// Group holds the relays of a measurement: one for each path to each server.
type Group struct{ open []*Relay }

// Before returns the port of this machine that leads to a server over a path; the server's own port
// where there is no path.
func (g *Group) Before(host, port string, path Path) (string, error) {
	if path == (Path{}) {
		return port, nil
	}
	r, err := To(net.JoinHostPort(host, port), Options{Path: path})
	if err != nil {
		return "", err
	}
	g.open = append(g.open, r)
	return strconv.Itoa(r.Port()), nil
}

// Close closes the relays.
func (g *Group) Close() {
	for _, r := range g.open {
		_ = r.Close()
	}
}
