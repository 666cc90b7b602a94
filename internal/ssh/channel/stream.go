package channel

import (
	"bytes"
	"context"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// stream is a channel whose data is kept until it is read.
type stream struct {
	*Channel
	out, err part
	requests chan *ssh.Request
}

// kept is how many requests wait to be read.
const kept = 16

// OpenChannel is Stream for package ssh.
func (c *Conn) OpenChannel(kind string, specific []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	return c.Stream(context.Background(), kind, specific)
}

// Stream opens a channel that is read as ssh.Channel. The end of ctx ends waiting for the answer
// alone. Requests that nobody reads are dropped after the first few: the reader of the connection
// waits for nobody.
func (c *Conn) Stream(ctx context.Context, kind string, specific []byte) (ssh.Channel, <-chan *ssh.Request, error) {
	s := newStream()
	var err error
	if s.Channel, err = c.open(ctx, kind, specific, s, false); err != nil {
		return nil, nil, err
	}
	return s, s.requests, nil
}

func newStream() *stream {
	s := &stream{requests: make(chan *ssh.Request, kept)}
	for _, p := range []*part{&s.out, &s.err} {
		p.of, p.came.L = s, &p.mu
	}
	return s
}

// Data keeps data. It is no more than a window.
func (s *stream) Data(stderr bool, data []byte) (took int) {
	if stderr {
		s.err.add(data)
	} else {
		s.out.add(data)
	}
	return 0
}

// EOF ends both streams of output, after the data that came.
func (s *stream) EOF() {
	s.out.end()
	s.err.end()
}

// Request passes on a request, which has been refused if it wanted an answer.
func (s *stream) Request(name string, payload []byte) {
	r := &ssh.Request{Type: name, Payload: bytes.Clone(payload)}
	select {
	case s.requests <- r:
	default:
	}
}

// Closed ends output and requests: the channel is closed.
func (s *stream) Closed() {
	s.EOF()
	close(s.requests)
}

// Close ends all readers, and closes the channel.
func (s *stream) Close() error {
	s.EOF()
	return s.Channel.Close()
}

// Read reads the standard output of a command, or forwarded data.
func (s *stream) Read(p []byte) (int, error) { return s.out.read(p) }

// HungUp reports whether the server has ended the channel, with nothing left to read.
func (s *stream) HungUp() bool {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	return s.out.ended && len(s.out.kept) == 0
}

// Stderr reads the standard error of a command; it cannot be written to.
func (s *stream) Stderr() io.ReadWriter { return stderr{s} }

type stderr struct{ *stream }

func (e stderr) Read(p []byte) (int, error) { return e.err.read(p) }

func (stderr) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// part is the unread data of one stream.
type part struct {
	of    *stream
	mu    sync.Mutex
	came  sync.Cond
	kept  []*block
	from  int // read of the first one
	to    int // written of the last one
	ended bool
}

// block holds data that nobody has read.
type block [maxPacket]byte

var blocks = sync.Pool{New: func() any { return new(block) }}

func (p *part) add(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(data) > 0 {
		if len(p.kept) == 0 || p.to == maxPacket {
			p.kept, p.to = append(p.kept, blocks.Get().(*block)), 0
		}
		n := copy(p.kept[len(p.kept)-1][p.to:], data)
		p.to += n
		data = data[n:]
	}
	p.came.Signal()
}

func (p *part) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.came.Broadcast()
}

func (p *part) read(to []byte) (int, error) {
	n, err := p.wait(to)
	if n > 0 {
		p.of.Took(n)
	}
	return n, err
}

func (p *part) wait(to []byte) (n int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.kept) == 0 && !p.ended {
		p.came.Wait()
	}
	if len(p.kept) == 0 && len(to) > 0 {
		return 0, io.EOF
	}
	for n < len(to) && len(p.kept) > 0 {
		end := maxPacket
		if len(p.kept) == 1 {
			end = p.to
		}
		took := copy(to[n:], p.kept[0][p.from:end])
		n += took
		if p.from += took; p.from == end {
			blocks.Put(p.kept[0])
			p.kept, p.from = p.kept[1:], 0
		}
	}
	return n, nil
}
