// Package sftp is a client of the SSH file transfer protocol, version 3
// (draft-ietf-secsh-filexfer-02), with the extensions of OpenSSH that a copy needs (PROTOCOL
// section 4). It is made for a thousand servers at once: requests of many goroutines leave in one
// write, data go from the caller's buffer to the connection, and a server is never trusted: replies
// are bounded, match a request, and hold no more than requested.
package sftp

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"sync"
	"time"

	"sshpace/internal/ssh/channel"
)

// Message types (draft section 3).
const (
	typeInit          = 1
	typeVersion       = 2
	typeOpen          = 3
	typeClose         = 4
	typeRead          = 5
	typeWrite         = 6
	typeLstat         = 7
	typeSetstat       = 9
	typeFsetstat      = 10
	typeOpendir       = 11
	typeReaddir       = 12
	typeRemove        = 13
	typeMkdir         = 14
	typeRmdir         = 15
	typeRealpath      = 16
	typeStat          = 17
	typeRename        = 18
	typeReadlink      = 19
	typeSymlink       = 20
	typeStatus        = 101
	typeHandle        = 102
	typeData          = 103
	typeName          = 104
	typeAttrs         = 105
	typeExtended      = 200
	typeExtendedReply = 201
)

const (
	version = 3
	// maxReply bounds a reply; OpenSSH's server sends at most 256 KiB.
	maxReply = 256<<10 + 1024
	// maxHandle is the draft's limit for handles.
	maxHandle = 256
	// defaultChunk is the size of reads and writes that every server accepts (draft section 3).
	defaultChunk = 32 << 10
)

// MaxChunk is the largest size of reads and writes: OpenSSH's limit (limits@openssh.com).
const MaxChunk = 255 << 10

// ErrProtocol says that the server violates the protocol.
var ErrProtocol = errors.New("the server breaks the SFTP protocol")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrProtocol, fmt.Sprintf(format, args...))
}

// Client is one session. Its methods may be called concurrently.
type Client struct {
	conn   io.ReadWriteCloser
	reads  *bufio.Reader
	chunk  func() int // most bytes of data in one request
	window window

	posix, expands, hardLinks bool // extensions that the server has
	links                     links
	frozen                    bool

	writing sync.Mutex // held by whoever writes to conn
	mu      sync.Mutex // guards the fields below
	queue   []byte     // requests that nobody has written yet
	spare   []byte     // an empty buffer for the queue
	calls   map[uint32]*call
	next    uint32
	err     error // why there will be no more replies
	done    chan struct{}
}

// call is a request that waits for its reply.
type call struct {
	into     []byte // where data go
	size     int    // bytes of data, in either direction
	inFlight int    // bytes of data in flight when it was sent
	sent     time.Time
	kind     byte
	body     []byte // of the reply, without the id; nil for data
	n        int    // bytes of data
	err      error
	ready    chan struct{}
}

var readyChannels = sync.Pool{New: func() any { return make(chan struct{}, 1) }}

// LeastInFlight is the least limit of the bytes in flight that keeps a server on a short path busy:
// twice the window of sshd's channels (channels.h, CHAN_SES_WINDOW_DEFAULT).
const LeastInFlight = 4 << 20

// MostInFlight is more than a server may send at once.
const MostInFlight = channel.MaxWindow

// NewClient opens a session on the streams of a server, with at most inFlight bytes of file data in
// flight. Close ends it.
func NewClient(conn io.ReadWriteCloser, inFlight int) (*Client, error) {
	c, limits, err := begin(conn, inFlight)
	if err != nil {
		return nil, err
	}
	c.chunk = sync.OnceValue(func() int { return defaultChunk })
	if limits {
		asked := c.begin(typeExtended, path("limits@openssh.com"), nil)
		c.Flush()
		c.chunk = sync.OnceValue(func() int { return asked.chunk() })
	}
	return c, nil
}

// Beside opens another session with the same server, of which all is known.
func (c *Client) Beside(conn io.ReadWriteCloser) (*Client, error) {
	b, _, err := begin(conn, c.window.most)
	if err != nil {
		return nil, err
	}
	b.chunk = c.chunk
	b.window.vegas = c.window.path()
	return b, nil
}

// begin exchanges versions. It reports whether the server says how large requests may be.
func begin(conn io.ReadWriteCloser, inFlight int) (c *Client, limits bool, err error) {
	c = &Client{conn: conn, reads: bufio.NewReaderSize(conn, 64<<10), calls: map[uint32]*call{}, done: make(chan struct{})}
	_, unsent := conn.Write([]byte{0, 0, 0, 5, typeInit, 0, 0, 0, version})
	// An account that refuses may have closed the connection before that: what was read says why.
	extensions, err := c.greeting()
	if err = cmp.Or(err, unsent); err != nil {
		return nil, false, err
	}
	for len(extensions.Rest) > 0 {
		switch name, data := string(extensions.Text()), string(extensions.Text()); {
		case data != "1":
		case name == "posix-rename@openssh.com":
			c.posix = true
		case name == "limits@openssh.com":
			limits = true
		case name == "expand-path@openssh.com":
			c.expands = true
		case name == "hardlink@openssh.com":
			c.hardLinks = true
		}
	}
	c.window.init(inFlight)
	go c.receive()
	return c, limits, nil
}

// Freeze makes requests that would change something on the host succeed without being sent, from
// now on. No file can be opened for writing.
func (c *Client) Freeze() { c.frozen = true }

// changes reports whether a request changes something on the host.
func changes(kind byte, body []byte) bool {
	d := &channel.Fields{Rest: body}
	switch kind {
	case typeWrite, typeSetstat, typeFsetstat, typeRemove, typeMkdir, typeRmdir, typeRename, typeSymlink:
		return true
	case typeOpen:
		d.Text()
		return d.Number()&Write != 0
	case typeExtended:
		return slices.Contains([]string{"posix-rename@openssh.com", "hardlink@openssh.com"}, string(d.Text()))
	}
	return false
}

// Close ends the session.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	return err
}

// Chunk returns the most bytes of one request. It waits for the server's answer about that.
func (c *Client) Chunk() int { return c.chunk() }

// RoundTrip returns the shortest time of an answer, 0 before the first one.
func (c *Client) RoundTrip() time.Duration {
	path := c.window.path()
	return path.Quickest()
}

// HasRoom reports whether a read or write of size bytes would leave at once.
func (c *Client) HasRoom(size int) bool { return c.window.hasRoom(size) }

// chunk waits for the server's limits, and returns the largest size of requests.
func (p Pending) chunk() int {
	if p.answered() != nil || p.call.kind != typeExtendedReply {
		return defaultChunk
	}
	d := &channel.Fields{Rest: p.call.body}
	packet, read, write := d.Long(), d.Long(), d.Long()
	if most := min(packet-1024, read, write, MaxChunk); d.Err() == nil && packet > 64<<10 && most >= defaultChunk {
		return int(most)
	}
	return defaultChunk
}

// length reads the length of the next message.
func (c *Client) length() (int, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.reads, head[:]); err != nil {
		return 0, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n < 1 || n > maxReply {
		return 0, broken("a message of %d bytes", n)
	}
	return int(n), nil
}

// receive delivers replies until the connection ends.
func (c *Client) receive() {
	var err error
	for err == nil {
		err = c.reply()
	}
	c.mu.Lock()
	if c.err = err; !errors.Is(err, ErrProtocol) {
		c.err = io.ErrUnexpectedEOF // however the connection ended
	}
	calls := c.calls
	c.calls = nil
	c.mu.Unlock()
	for _, x := range calls {
		x.err = c.err
		c.answered(x)
	}
	close(c.done)
	if errors.Is(err, ErrProtocol) {
		c.conn.Close()
	}
}

// reply reads one reply and wakes its caller.
func (c *Client) reply() error {
	n, err := c.length()
	if err != nil {
		return err
	}
	var head [5]byte
	if n < len(head) {
		return broken("a reply of %d bytes", n)
	}
	if _, err := io.ReadFull(c.reads, head[:]); err != nil {
		return err
	}
	n -= len(head)
	id := binary.BigEndian.Uint32(head[1:])
	c.mu.Lock()
	x := c.calls[id]
	delete(c.calls, id)
	c.mu.Unlock()
	if x == nil {
		return broken("a reply to nothing")
	}
	x.kind = head[0]
	if x.kind == typeData && x.into != nil {
		err = c.data(x, n)
	} else {
		x.body = make([]byte, n)
		_, err = io.ReadFull(c.reads, x.body)
	}
	x.err = err
	c.answered(x)
	return err
}

// answered hands the reply over to the caller that waits for it.
func (c *Client) answered(x *call) {
	c.window.leave(x.size)
	c.window.learn(x.size, x.inFlight, time.Since(x.sent))
	x.ready <- struct{}{}
}

// data reads into the caller's buffer, never more than it has room for.
func (c *Client) data(x *call, n int) error {
	var head [4]byte
	if n < len(head) {
		return broken("data of %d bytes", n)
	}
	if _, err := io.ReadFull(c.reads, head[:]); err != nil {
		return err
	}
	size := int(binary.BigEndian.Uint32(head[:]))
	if size != n-len(head) || size > len(x.into) || size == 0 {
		return broken("%d bytes of data in a message of %d, where %d were asked for", size, n, len(x.into))
	}
	x.n = size
	_, err := io.ReadFull(c.reads, x.into[:size])
	return err
}

// ask sends a request and waits for its reply.
func (c *Client) ask(kind byte, body []byte) (*call, error) {
	x, err := c.send(kind, body, nil, nil)
	if err != nil {
		return nil, err
	}
	return x, c.wait(x)
}

// wait waits for the reply. It must be called exactly once.
func (c *Client) wait(x *call) error {
	c.Flush()
	<-x.ready
	readyChannels.Put(x.ready)
	return x.err
}

// maxQueue is how much may be queued before somebody writes it.
const maxQueue = 64 << 10

// send queues a request: its body, followed by data. The queue is written when it is long, or when
// somebody waits for a reply: simultaneous requests of a thousand goroutines leave in a few
// packets.
func (c *Client) send(kind byte, body, data, into []byte) (*call, error) {
	x := &call{into: into, size: len(data) + len(into), ready: readyChannels.Get().(chan struct{})}
	if c.frozen && changes(kind, body) {
		x.kind, x.body = typeStatus, []byte{0, 0, 0, statusOK}
		x.ready <- struct{}{}
		return x, nil
	}
	if x.size > 0 {
		x.inFlight = c.window.enter(x.size, c.Flush)
	}
	c.mu.Lock()
	if c.calls == nil {
		err := c.err
		c.mu.Unlock()
		c.window.leave(x.size)
		return nil, err
	}
	x.sent = time.Now()
	id := c.next
	c.next++
	c.calls[id] = x
	c.queue = binary.BigEndian.AppendUint32(c.queue, uint32(5+len(body)+len(data)))
	c.queue = append(c.queue, kind)
	c.queue = binary.BigEndian.AppendUint32(c.queue, id)
	c.queue = append(c.queue, body...)
	c.queue = append(c.queue, data...)
	full := len(c.queue) >= maxQueue
	c.mu.Unlock()
	if full {
		c.writing.Lock()
		c.write()
		c.writing.Unlock()
	}
	return x, nil
}

// Flush sends the queue, or leaves that to the goroutine that is sending already.
func (c *Client) Flush() {
	runtime.Gosched() // let those queue that were woken by the same packet
	for c.queued() && c.writing.TryLock() {
		for c.queued() {
			c.write()
		}
		c.writing.Unlock()
	}
}

// write writes the present queue. The caller holds writing. An error ends the session, and all
// waiting calls get it.
func (c *Client) write() {
	c.mu.Lock()
	out := c.queue
	c.queue, c.spare = c.spare[:0], nil
	c.mu.Unlock()
	if len(out) == 0 {
		return
	}
	if _, err := c.conn.Write(out); err != nil {
		c.conn.Close()
	}
	c.mu.Lock()
	c.spare = out
	c.mu.Unlock()
}

func (c *Client) queued() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue) > 0
}
