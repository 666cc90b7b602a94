//go:build linux

// Package relay is a TCP relay on loopback that makes a short path long: it
// delays bytes each way, limits their rate, stalls them as a lost segment does,
// stops or cuts connections in the middle, and tells when which bytes went past.
// It needs no privilege, and the programs at both ends are the real ones.
//
// What it cannot do: TCP ends at the relay. Windows, retransmissions and
// acknowledgements are those of two short connections, so that a wait for an
// acknowledgement (Nagle's algorithm, RFC 896) costs what it costs on loopback,
// and a transfer is never held up by TCP's window over the long path, only by
// the window of the program's own protocol.
//
// A connection opens as a distant one would: the third packet of TCP's
// handshake reaches a server after three times the delay, so that is when the
// relay connects, and a first answer comes back after two round trips.
package relay

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/sys/tcp"
)

// Path is what happens to the bytes of each direction. The zero value passes
// them on at once.
type Path struct {
	Delay time.Duration // each way; a round trip takes twice as long
	Rate  float64       // bytes per second each way, of all connections together; 0 = unlimited
	Loss  Loss
}

// Loss delays what a lost segment would: it and all that is behind it wait for
// the retransmission. Segments are lost at random, the same ones for one Seed.
type Loss struct {
	Share float64       // of segments of 1448 bytes, 0 to 1
	Stall time.Duration // what a loss costs; 0 = 200 ms, Linux' shortest retransmission time
	Seed  uint64
}

// Options of a Relay.
type Options struct {
	Path Path
	// Watch is told of everything that has left, of both directions
	// concurrently; nil watches nothing.
	Watch func(Seen)
	// Prompt acknowledges at once, so that neither end waits for the relay where
	// Nagle's algorithm is on.
	Prompt bool
	// Listener is where clients connect; nil is a port of 127.0.0.1 for our own user. The
	// relay closes it.
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

// To carries every connection to a TCP address. The caller closes the relay.
func To(address string, o Options) (*Relay, error) {
	var d net.Dialer
	return start(func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }, o)
}

// start has dial make the connections to the server.
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

// Port is where the relay listens.
func (r *Relay) Port() int { return r.listener.Addr().(*net.TCPAddr).Port }

// Freeze swallows what comes from now on, like a pulled cable: connections stay
// open and nothing arrives any more.
func (r *Relay) Freeze() { r.frozen.Store(true) }

// Cut resets all connections, as a firewall does that has forgotten them.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for c := range r.conns {
		c.reset()
	}
}

// Close stops listening, resets what is open and waits for it to end.
func (r *Relay) Close() error {
	err := r.listener.Close()
	r.end()
	r.Cut()
	r.done.Wait()
	return err
}

func (r *Relay) accept() {
	for {
		in, err := r.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			time.Sleep(time.Millisecond) // out of descriptors: some will come free
			continue
		}
		r.carry(in)
	}
}

// carry begins to carry a connection.
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

// Group are the relays of a measurement: one for each path before each server.
type Group struct{ open []*Relay }

// Before is the port of this machine that leads to a server over a path; the server's own where
// the path is none.
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

// Close closes them.
func (g *Group) Close() {
	for _, r := range g.open {
		_ = r.Close()
	}
}
