package mux

import (
	"bufio"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/session"
)

// Server is a master: it lets the ssh(1) of its user, and others who speak PROTOCOL.mux, use a
// connection. It forwards no agent and no X11: ssh's requests for them are passed over, as
// OpenSSH's master does where its own configuration forwards none. Set the fields before Serve.
type Server struct {
	Conn *session.Connection
	// SendEnv are patterns of the variables that clients may set (ssh_config(5)), SetEnv variables
	// of every session, as NAME=value.
	SendEnv, SetEnv []string
	// Silence is how long the server may say nothing at all when it is asked whether it lives,
	// which it is soon after something else was asked; 0 is three seconds.
	Silence time.Duration
	// PermitRemoteOpen has the places, as HOST:PORT, that remote forwards may lead to where those
	// who connect say where (ssh_config(5)); nil is any.
	PermitRemoteOpen []string

	began    time.Time
	path     string
	life     context.Context // of all that it serves
	end      context.CancelCauseFunc
	forwards forwards

	mu      sync.Mutex
	tasks   sync.WaitGroup
	listen  *Listener
	clients int
	ending  error             // why it takes no more clients; nil: it does
	next    uint32            // number of what is opened next
	open    map[uint32]string // sessions and connections
	used    time.Time         // when the last of them ended
	watch   watch
}

// Ends of Serve that a client asked for.
var (
	ErrExit    = errors.New("asked to exit")
	ErrStopped = errors.New("asked to take no more sessions, and the last one has ended")
)

// maxClients bounds the clients of one master.
const maxClients = 1000

// Serve serves clients until ctx or the connection ends, its server says nothing for long
// (ErrSilent), or a client asks for that: ErrExit, ErrStopped. It closes the listener at once then,
// all clients, and the connection.
func (s *Server) Serve(ctx context.Context, l *Listener) error {
	s.prepare(ctx, l)
	defer context.AfterFunc(ctx, func() { s.finish(context.Cause(ctx)) })()
	life := s.Conn.Life()
	defer context.AfterFunc(life, func() { s.finish(context.Cause(life)) })()
	s.tasks.Go(func() { s.accept(l) })
	<-s.life.Done()
	s.mu.Lock()
	s.watch.timer.Stop()
	s.watch.looked.Broadcast()
	s.listen.Close()
	s.mu.Unlock()
	s.giveUp()
	_ = s.Conn.Close()
	s.tasks.Wait()
	return context.Cause(s.life)
}

func (s *Server) prepare(ctx context.Context, l *Listener) {
	s.mu.Lock() // others may count sessions already
	defer s.mu.Unlock()
	s.life, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	s.began, s.listen, s.path = time.Now(), l, l.Path
	s.open, s.used = map[uint32]string{}, s.began
	s.watch.timer, s.watch.asked, s.watch.looked.L = time.AfterFunc(1<<62, s.tick), map[*func()]bool{}, &s.mu
	s.watch.relays = map[*channel.Relay]*link{}
	s.forwards.open, s.forwards.slots = map[forward]*opened{}, make(chan struct{}, maxForwards)
	if s.ending != nil {
		l.Close()
		s.settle()
	}
}

// over reports whether it has ended.
func (s *Server) over() bool { return s.life.Err() != nil }

// finish ends it. What was asked of the server is answered before its clients are closed: to ssh -W
// a closed connection is a success.
func (s *Server) finish(why error) {
	s.giveUp()
	s.end(why)
}

// Stop ends Serve as soon as there is nothing left to do. It takes no more clients.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = ErrStopped
	if s.listen != nil {
		s.listen.Close()
		s.settle()
	}
}

// settle ends a server that takes no more clients and has nothing left to do. The caller holds the
// lock.
func (s *Server) settle() {
	if s.ending != nil && s.clients == 0 && len(s.open) == 0 {
		s.end(s.ending)
	}
}

// accept takes clients until the listener is closed.
func (s *Server) accept(listen *Listener) {
	for {
		conn, err := listen.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // no descriptors are left: who waits shall not, and connects by itself
			s.mu.Lock()
			defer s.mu.Unlock()
			listen.Close()
			s.show()
			return
		case !s.enter():
			conn.Close()
		default:
			in := &passing{conn: conn}
			l := &link{path: s.path, conn: conn, in: bufio.NewReader(in), passing: in}
			s.tasks.Go(func() { s.client(l) })
		}
	}
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clients >= maxClients {
		return false
	}
	s.clients++
	return true
}

func (s *Server) leave(l *link) {
	l.conn.Close()
	l.passing.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clients--
	s.settle()
}

// client serves a client until it or its session ends. A message that makes no sense ends it, too.
func (s *Server) client(l *link) {
	defer s.leave(l)
	defer context.AfterFunc(s.life, func() { l.conn.Close() })()
	if l.checkOwner() != nil || !s.lives() { // until the greeting ssh connects by itself, also for -W
		return
	}
	hello := channel.AppendNumber(channel.AppendNumber(nil, msgHello), version)
	if l.send(hello, channel.Text("info", "0")) != nil {
		return
	}
	kind, body, err := l.message()
	if err != nil || kind != msgHello || len(body) < 4 || binary.BigEndian.Uint32(body) != version {
		return
	}
	c := &client{link: l, of: s}
	defer c.close()
	for err == nil {
		if kind, body, err = l.message(); err == nil {
			err = c.take(kind, &channel.Fields{Rest: body})
		}
	}
}

// client is a client of a Server.
type client struct {
	*link
	of      *Server
	session *passenger // nil: none
}

func (c *client) close() {
	if c.session != nil {
		c.session.leave()
	}
}

// take handles a request.
func (c *client) take(kind uint32, f *channel.Fields) error {
	id := f.Number()
	if f.Err() != nil {
		return errShort
	}
	switch kind {
	case askAlive:
		return c.reply(sayAlive, id, uint32(os.Getpid()))
	case askSession:
		return c.newSession(id, f)
	case askStdio:
		return c.newStdio(id, f)
	case askForward, askCancel:
		return c.forward(kind, id, f)
	case askInfo:
		return c.info(id, f)
	case askProxy:
		return c.proxyMode(id)
	case askStop:
		c.of.Stop()
		return c.reply(sayOK, id)
	case askExit:
		err := c.reply(sayOK, id)
		c.of.finish(ErrExit)
		return err
	}
	return c.fail(id, "unsupported request")
}

// reply answers with numbers.
func (l *link) reply(kind uint32, numbers ...uint32) error {
	p := channel.AppendNumber(nil, kind)
	for _, n := range numbers {
		p = channel.AppendNumber(p, n)
	}
	return l.send(p, nil)
}

// fail refuses a request.
func (l *link) fail(id uint32, why string) error {
	p := channel.AppendNumber(channel.AppendNumber(nil, sayFailure), id)
	return l.send(p, channel.Text(why))
}

// asks is Server.ask for a request, which fails unless it is answered in time.
func (c *client) asks(id uint32, released func()) (answered func() bool) {
	return c.of.ask(func() {
		released()
		_ = c.conn.SetWriteDeadline(time.Now().Add(replyTimeout))
		_ = c.fail(id, ErrSilent.Error())
		c.conn.Close()
	})
}

// info answers ssh -O conninfo and -O channels.
func (c *client) info(id uint32, f *channel.Fields) error {
	defer c.asks(id, func() {})()
	text, known := "info request type not supported", uint32(1)
	switch string(f.Text()) {
	case "connection":
		text = c.of.connection()
	case "channels":
		text = c.of.channels()
	default:
		known = 0
	}
	p := channel.AppendNumber(channel.AppendNumber(channel.AppendNumber(nil, sayInfo), id), known)
	return c.send(p, channel.Text(text))
}

// connection describes the connection as ssh does.
func (s *Server) connection() string {
	host, _ := os.Hostname()
	a := s.Conn.Suite
	either := func(in, out string) string {
		if in == out {
			return cmp.Or(in, "<implicit>") // a cipher that authenticates by itself
		}
		return cmp.Or(in, "<implicit>") + " in, " + cmp.Or(out, "<implicit>") + " out"
	}
	return fmt.Sprintf("Connection information for %s pid %d\r\n  tcp %v -> %v\r\n  duration %v\r\n  kexalgorithm %s\r\n  hostkeyalgorithm %s\r\n"+
		"  cipher %s\r\n  mac %s\r\n  compression none\r\n",
		host, os.Getpid(), s.Conn.LocalAddr(), s.Conn.RemoteAddr(), time.Since(s.began).Round(time.Second), a.KeyExchange, a.HostKey,
		either(a.Read.Cipher, a.Write.Cipher), either(a.Read.MAC, a.Write.MAC))
}

// channels lists what is open.
func (s *Server) channels() string {
	s.mu.Lock()
	var lines []string
	for id, what := range s.open {
		lines = append(lines, fmt.Sprintf("  #%d %.300s\r\n", id, what))
	}
	s.mu.Unlock()
	slices.Sort(lines)
	return "The following connections are open:\r\n" + strings.Join(append(lines, s.forwards.list()...), "")
}

// opened notes what is open, and returns its number.
func (s *Server) opened(what string) (id uint32, over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id = s.next
	s.next++
	s.open[id] = what
	return id, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, id)
		s.used = time.Now()
		s.settle()
	}
}

// Sessions is the number of open sessions and connections.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Idle returns for how long there has been no session; 0 while there is one.
func (s *Server) Idle() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) > 0 || s.used.IsZero() {
		return 0
	}
	return time.Since(s.used)
}

// permitted returns the variables of a client that may be set, and those of every session.
func (s *Server) permitted(env []string) []string {
	may := func(kv string) bool {
		name, _, found := strings.Cut(kv, "=")
		return found && name != "" && slices.ContainsFunc(s.SendEnv, func(p string) bool { return wildcard.Match(name, p) })
	}
	return append(slices.DeleteFunc(env, func(kv string) bool { return !may(kv) }), s.SetEnv...)
}

// queued is the most that waits for a client in proxy mode: more than the windows that ours grants.
const queued = 192 << 20

// proxyMode carries the channels of a client that speaks SSH's connection protocol itself.
func (c *client) proxyMode(id uint32) error {
	if c.session != nil {
		return c.fail(id, "Multiple sessions not supported")
	}
	if err := c.reply(sayProxy, id); err != nil {
		return err
	}
	_, over := c.of.opened("proxy")
	defer over()
	q := &queue{to: c.link}
	q.came.L = &q.mu
	c.of.tasks.Go(q.write)
	defer q.end()
	r := c.of.Conn.Relay(q.add)
	defer r.Close()
	defer c.of.relay(r, c.link)()
	var p []byte
	var err error
	for {
		if p, err = c.packet(p); err == nil {
			c.of.expect()
			err = r.Send(p)
		}
		if err != nil {
			return err
		}
	}
}

// queue holds messages for a client in proxy mode, so that no client holds up the others.
type queue struct {
	to      *link
	mu      sync.Mutex
	came    sync.Cond
	waits   []byte
	leaving int // bytes that are being written
	ended   bool
}

// add appends a message.
func (q *queue) add(head, rest []byte) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leaving+len(q.waits) > queued {
		q.to.conn.Close()
		return
	}
	q.waits = binary.BigEndian.AppendUint32(q.waits, uint32(1+len(head)+len(rest)))
	q.waits = append(append(append(q.waits, 0), head...), rest...)
	q.came.Signal()
}

func (q *queue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.came.Signal()
}

// write writes messages until the end.
func (q *queue) write() {
	var now []byte
	for {
		q.mu.Lock()
		for len(q.waits) == 0 && !q.ended {
			q.came.Wait()
		}
		if len(q.waits) == 0 {
			q.mu.Unlock()
			return
		}
		now, q.waits = q.waits, now[:0]
		q.leaving = len(now)
		q.mu.Unlock()
		_, _ = q.to.conn.Write(now) // its reader notices the end
	}
}

// passing reads a socket with the files that are passed through it.
type passing struct {
	conn   *net.UnixConn
	files  []int
	beside [64]byte // control messages
}

// maxFiles is the most that waits: the three of a session.
const maxFiles = 3

// Read reads data, and keeps the files that come with it.
func (p *passing) Read(data []byte) (int, error) {
	n, have, _, _, err := p.conn.ReadMsgUnix(data, p.beside[:])
	if n == 0 && err == nil {
		err = io.EOF
	}
	messages, _ := unix.ParseSocketControlMessage(p.beside[:have])
	for _, m := range messages {
		files, _ := unix.ParseUnixRights(&m)
		p.files = append(p.files, files...)
	}
	for len(p.files) > maxFiles {
		unix.Close(p.files[maxFiles])
		p.files = slices.Delete(p.files, maxFiles, maxFiles+1)
	}
	return max(n, 0), err
}

func (p *passing) close() {
	for _, f := range p.files {
		unix.Close(f)
	}
	p.files = nil
}

// received takes n files of the client, each of which comes with a byte.
func (l *link) received(n int) ([]int, error) {
	if _, err := io.CopyN(io.Discard, l.in, int64(n)); err != nil {
		return nil, err
	}
	p := l.passing
	if len(p.files) != n {
		p.close()
		return nil, errNoFiles
	}
	files := p.files
	p.files = nil
	return files, nil
}

var errNoFiles = errors.New("no files have come")
