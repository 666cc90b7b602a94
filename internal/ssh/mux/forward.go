package mux

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
	"sshpace/internal/sys/tcp"
)

// unixPath is the port of a Unix socket, whose path is the host.
const unixPath = 0xfffffffe

// place is where a connection begins or leads.
type place struct {
	host string
	port uint32
}

func (a place) String() string {
	if a.port == unixPath {
		return a.host
	}
	return net.JoinHostPort(a.host, strconv.FormatUint(uint64(a.port), 10))
}

func (a place) valid() bool { return a.port <= 65535 || a.port == unixPath && a.host != "" }

// direct returns the channel that leads from the server to a place (RFC 4254 section 7.2;
// OpenSSH, PROTOCOL section 2.4), for a connection that came from an address.
func (a place) direct(from net.Addr) (kind string, specific []byte) {
	if a.port == unixPath {
		return "direct-streamlocal@openssh.com", channel.AppendNumber(channel.Text(a.host, ""), 0)
	}
	host, port := "127.0.0.1", 65535
	if tcp, ok := from.(*net.TCPAddr); ok {
		host, port = tcp.IP.String(), tcp.Port
	}
	to := channel.AppendNumber(channel.Text(a.host), a.port)
	return "direct-tcpip", channel.AppendNumber(channel.AppendText(to, host), uint32(port))
}

// request returns the request that the server listen at a place, or no longer (RFC 4254 section
// 7.1).
func (a place) request(cancel string) (name string, specific []byte) {
	if a.port == unixPath {
		return cancel + "streamlocal-forward@openssh.com", channel.Text(a.host)
	}
	return cancel + "tcpip-forward", channel.AppendNumber(channel.Text(a.remoteHost()), a.port)
}

// remoteHost is the server's name for the host.
func (a place) remoteHost() string {
	switch a.host {
	case "":
		return "localhost"
	case "*":
		return ""
	}
	return a.host
}

// listen listens at a place of this machine.
func (a place) listen() (all []net.Listener, err error) {
	hosts := []string{a.host}
	switch {
	case a.port == unixPath:
		return listenUnix(a.host)
	case a.host == "" || a.host == "localhost":
		hosts = []string{"127.0.0.1", "::1"}
	case a.host == "*":
		hosts = []string{""}
	}
	for _, h := range hosts {
		l, e := net.Listen("tcp", place{h, a.port}.String())
		if e != nil {
			err = errors.Join(err, e)
			continue
		}
		all = append(all, l)
		a.port = uint32(l.Addr().(*net.TCPAddr).Port) // both families have the same
	}
	if len(all) > 0 {
		err = nil
	}
	return all, err
}

// listenUnix makes a socket that its user alone can use.
func listenUnix(at string) ([]net.Listener, error) {
	l, err := net.Listen("unix", at)
	if err == nil {
		err = os.Chmod(at, 0o600)
	}
	return []net.Listener{l}, err
}

// The kinds of forwards (PROTOCOL.mux section 11).
const (
	local   = 1
	remote  = 2
	dynamic = 3
)

// forward is a forward that a client asked for.
type forward struct {
	kind     uint32
	from, to place
}

func (f forward) String() string {
	kinds := map[uint32]string{local: "local", remote: "remote", dynamic: "dynamic"}
	return fmt.Sprintf("%s forward %v -> %v", kinds[f.kind], f.from, f.to)
}

// valid reports whether a forward makes sense.
func (f forward) valid() bool {
	switch {
	case !f.from.valid() || !f.to.valid():
		return false
	case f.kind == dynamic:
		return f.from.port != unixPath
	case f.kind == local:
		return f.to.port != 0 && f.to.host != ""
	}
	return f.kind == remote && f.to.host != ""
}

// socks reports whether whoever connects says where to.
func (f forward) socks() bool { return f.kind == dynamic || f.kind == remote && f.to.port == 0 }

// forwards are all of a master, and their connections.
type forwards struct {
	mu      sync.Mutex // held while the server is asked
	open    map[forward]*opened
	accepts sync.Once
	slots   chan struct{} // of connections
}

// opened is an open forward.
type opened struct {
	listeners []net.Listener
	at        place // where the server listens
}

// maxForwards bounds the forwards of one master, and their connections.
const maxForwards = 1000

// forward opens or cancels a forward.
func (c *client) forward(kind, id uint32, f *channel.Fields) error {
	w := forward{kind: f.Number(), from: place{string(f.Text()), f.Number()}, to: place{string(f.Text()), f.Number()}}
	switch {
	case f.Err() != nil:
		return errShort
	case !w.valid():
		return c.fail(id, "Invalid forwarding request")
	}
	answered := c.asks(id, func() {})
	port, failure, err := c.of.change(kind, w, answered)
	answered()
	switch {
	case err != nil:
		return err
	case failure != "":
		return c.fail(id, failure)
	case port != 0:
		return c.reply(sayPort, id, port)
	}
	return c.reply(sayOK, id)
}

// change opens or cancels a forward. It returns the port that the server chose, and why nothing has
// changed.
func (s *Server) change(kind uint32, w forward, answered func() bool) (port uint32, failure string, err error) {
	all := &s.forwards
	all.mu.Lock()
	defer all.mu.Unlock()
	o := all.open[w]
	if kind == askCancel {
		if o == nil {
			return 0, "port not forwarded", nil
		}
		delete(all.open, w)
		s.cancel(w, o)
		return 0, "", nil
	}
	if o == nil && len(all.open) < maxForwards {
		switch o = s.begin(w); {
		case o != nil && !answered():
			s.cancel(w, o)
			return 0, "", ErrSilent
		case o != nil:
			all.open[w] = o
		}
	}
	switch {
	case o == nil && w.kind == remote && w.from.port == unixPath:
		failure = "remote port forwarding failed for listen path " + w.from.host
	case o == nil && w.kind == remote:
		failure = fmt.Sprintf("remote port forwarding failed for listen port %d", w.from.port)
	case o == nil:
		failure = "Port forwarding failed"
	case w.kind == remote && w.from.port == 0:
		port = o.at.port
	}
	return port, failure, nil
}

// begin opens a forward; nil is a failure.
func (s *Server) begin(w forward) *opened {
	if w.kind == remote {
		return s.beginRemote(w)
	}
	listeners, err := w.from.listen()
	if err != nil {
		return nil
	}
	for _, l := range listeners {
		s.tasks.Go(func() { s.serveLocal(l, w) })
	}
	return &opened{listeners: listeners}
}

func (s *Server) beginRemote(w forward) *opened {
	s.forwards.accepts.Do(func() { s.Conn.Accept(s.wanted) })
	name, specific := w.from.request("")
	ok, answer, err := s.Conn.SendRequest(name, true, specific)
	if err != nil || !ok {
		return nil
	}
	o := &opened{at: w.from}
	if w.from.port == 0 {
		o.at.port = (&channel.Fields{Rest: answer}).Number()
	}
	return o
}

// cancel ends a forward; its connections go on.
func (s *Server) cancel(w forward, o *opened) {
	for _, l := range o.listeners {
		l.Close()
	}
	if w.kind == remote {
		name, specific := o.at.request("cancel-")
		_, _, _ = s.Conn.SendRequest(name, true, specific) // it takes nothing more in any case: see asked
	}
}

// list describes the open forwards.
func (f *forwards) list() (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for w := range f.open {
		lines = append(lines, fmt.Sprintf("  %.300v\r\n", w))
	}
	slices.Sort(lines)
	return lines
}

// serveLocal carries the connections to a listener.
func (s *Server) serveLocal(l net.Listener, w forward) {
	defer context.AfterFunc(s.life, func() { l.Close() })()
	for conn := range tcp.Accepted(l) {
		s.forwards.slots <- struct{}{}
		s.tasks.Go(func() {
			defer func() { <-s.forwards.slots }()
			s.carryLocal(conn.(duplex), w)
		})
	}
}

// duplex is a connection whose directions end apart.
type duplex interface {
	io.ReadWriteCloser
	CloseWrite() error
}

// carryLocal carries a connection to us.
func (s *Server) carryLocal(conn duplex, w forward) {
	defer conn.Close()
	defer context.AfterFunc(s.life, func() { conn.Close() })()
	to, reply := w.to, func(bool) error { return nil }
	if w.socks() {
		var err error
		if to, reply, err = socks(conn); err != nil {
			return
		}
	}
	kind, specific := to.direct(conn.(net.Conn).RemoteAddr())
	ch, _, err := s.Conn.Stream(s.life, kind, specific)
	if reply(err == nil) != nil || err != nil {
		return
	}
	s.join(to.String(), conn, ch)
}

// wanted takes the channels of remote forwards.
func (s *Server) wanted(offer ssh.NewChannel) bool {
	var at place
	f := &channel.Fields{Rest: offer.ExtraData()}
	switch at.host = string(f.Text()); offer.ChannelType() {
	case "forwarded-tcpip":
		at.port = f.Number()
	case "forwarded-streamlocal@openssh.com":
		at.port = unixPath
	default:
		return false
	}
	select {
	case s.forwards.slots <- struct{}{}:
	default:
		return false
	}
	s.tasks.Go(func() {
		defer func() { <-s.forwards.slots }()
		if w := s.asked(at); w == nil {
			_ = offer.Reject(ssh.Prohibited, "not wanted")
		} else {
			s.carryRemote(offer, *w)
		}
	})
	return true
}

// asked returns the forward to a place where the server listens. Some servers name the address that
// they listen at otherwise than it was requested.
func (s *Server) asked(at place) *forward {
	s.forwards.mu.Lock()
	defer s.forwards.mu.Unlock()
	var alike []*forward
	for w, o := range s.forwards.open {
		switch {
		case w.kind != remote || o.at.port != at.port:
		case at.port == unixPath && o.at.host == at.host, at.port != unixPath && o.at.remoteHost() == at.host:
			return &w
		case at.port != unixPath:
			alike = append(alike, &w)
		}
	}
	if len(alike) == 1 {
		return alike[0]
	}
	return nil
}

// carryRemote carries a connection to the server.
func (s *Server) carryRemote(offer ssh.NewChannel, w forward) {
	if w.socks() {
		s.carrySocks(offer)
		return
	}
	conn, err := s.dial(w.to)
	if err != nil {
		_ = offer.Reject(ssh.ConnectionFailed, "connect failed")
		return
	}
	defer conn.Close()
	if ch, _, err := offer.Accept(); err == nil {
		s.join(w.to.String(), conn, ch)
	}
}

// carrySocks carries a connection to the server that says itself where it leads.
func (s *Server) carrySocks(offer ssh.NewChannel) {
	ch, _, err := offer.Accept()
	if err != nil {
		return
	}
	defer ch.Close()
	to, reply, err := socks(ch)
	if err != nil {
		return
	}
	conn, err := duplex(nil), errSocks
	if s.opens(to) {
		conn, err = s.dial(to)
	}
	if reply(err == nil) != nil || err != nil {
		return
	}
	defer conn.Close()
	s.join(to.String(), conn, ch)
}

// opens reports whether PermitRemoteOpen has a place.
func (s *Server) opens(to place) bool {
	return s.PermitRemoteOpen == nil || slices.ContainsFunc(s.PermitRemoteOpen, func(permitted string) bool {
		host, port, err := net.SplitHostPort(permitted)
		number, unknown := net.LookupPort("tcp", port)
		return strings.EqualFold(permitted, "any") ||
			err == nil && (host == "*" || host == to.host) && (port == "*" || unknown == nil && uint32(number) == to.port)
	})
}

// dial connects to a place of this machine or its network.
func (s *Server) dial(to place) (duplex, error) {
	network := "tcp"
	if to.port == unixPath {
		network = "unix"
	}
	var d net.Dialer
	conn, err := d.DialContext(s.life, network, to.String())
	if err != nil {
		return nil, err
	}
	return conn.(duplex), nil
}

// join carries both directions of a connection to their ends.
func (s *Server) join(what string, a, b duplex) {
	_, over := s.opened("to " + what)
	defer over()
	end := sync.OnceFunc(func() { a.Close(); b.Close() })
	defer end()
	defer context.AfterFunc(s.life, end)()
	carry := func(to, from duplex) {
		if _, err := io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from}); err != nil {
			end()
		}
		_ = to.CloseWrite()
	}
	var back sync.WaitGroup
	back.Go(func() { carry(a, b) })
	carry(b, a)
	back.Wait()
}
