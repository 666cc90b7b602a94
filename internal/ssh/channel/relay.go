package channel

import (
	"bytes"
	"errors"
	"sync"
)

// Relay carries the channels of another client, which has numbers and windows of its own: it
// translates the numbers, and knows which channels are the client's.
type Relay struct {
	conn *Conn
	to   func(head, rest []byte)

	mu   sync.Mutex
	open map[uint32]*relayed // by the server's numbers
	gone bool                // the client
}

// relayed is a channel of the client.
type relayed struct {
	of            *Relay
	local, client uint32
	remote        uint32
	closed, ended bool // by us, by the server
}

// Relay begins one. to takes messages for the client, each in two parts that are valid during the
// call, and must not wait.
func (c *Conn) Relay(to func(head, rest []byte)) *Relay {
	return &Relay{conn: c, to: to, open: map[uint32]*relayed{}}
}

var errKind = errors.New("a message that a client must not send")

// Send passes on a message of the client. Requests for the connection as a whole are refused, and
// what is not for a channel of the client's is dropped. p may be reused afterwards.
func (r *Relay) Send(p []byte) error {
	f := FieldsOf(p)
	switch kind := p[0]; {
	case kind == msgOpen:
		return r.begin(f)
	case kind == msgGlobalRequest:
		f.Text()
		if f.Bool() {
			r.to([]byte{msgRequestFailure}, nil)
		}
		return f.Err()
	case kind >= msgWindowAdjust && kind <= msgFailure:
		return r.pass(kind, f.Number(), p)
	}
	return errKind
}

// begin opens a channel of the client.
func (r *Relay) begin(f *Fields) error {
	name, ch := f.Text(), &relayed{of: r}
	ch.client = f.Number()
	rest := *f
	rest.Number()
	rest.Number()
	if rest.Err() != nil || bytes.IndexByte(name, 0) >= 0 { // the server would end the connection
		return errKind
	}
	c := r.conn
	c.mu.Lock()
	err := c.number(ch, &ch.local)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	c.start()
	c.goOn()
	return c.carrier.Send(append(AppendNumber(AppendText([]byte{msgOpen}, name), ch.local), f.Rest...))
}

func (r *Relay) pass(kind byte, number uint32, p []byte) error {
	r.mu.Lock()
	ch := r.open[number]
	over := ch == nil || ch.closed
	if !over && kind == msgClose {
		r.close(ch)
	}
	r.mu.Unlock()
	if over {
		return nil
	}
	return r.conn.carrier.Send(p)
}

// Open reports whether the client has a channel.
func (r *Relay) Open() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.open) > 0
}

// close notes that we close a channel. The server's number is free when both sides have.
func (r *Relay) close(ch *relayed) {
	if ch.closed = true; ch.ended {
		delete(r.open, ch.remote)
	}
}

// Close ends the channels of a client that has gone.
func (r *Relay) Close() {
	r.mu.Lock()
	r.gone = true
	var left []uint32
	for number, ch := range r.open {
		if !ch.closed {
			left = append(left, number)
			r.close(ch)
		}
	}
	r.mu.Unlock()
	for _, number := range left {
		_ = r.conn.carrier.Send(numbered(msgClose, number)) // the reader notices the end
	}
}

// take passes on a message of the server.
func (ch *relayed) take(kind byte, f *Fields) error {
	r := ch.of
	r.mu.Lock()
	farewell := false
	switch kind {
	case msgConfirmation:
		rest := *f
		if ch.remote = rest.Number(); rest.Err() != nil {
			r.mu.Unlock()
			return ErrShort
		}
		r.open[ch.remote] = ch
		if farewell = r.gone; farewell {
			r.close(ch)
		}
	case msgOpenFailure:
		ch.ended = true
	case msgClose:
		if ch.ended = true; ch.closed {
			delete(r.open, ch.remote)
		}
	}
	gone := r.gone
	r.mu.Unlock()
	if ch.ended {
		r.conn.remove(ch.local)
	}
	switch {
	case farewell:
		return r.conn.carrier.Send(numbered(msgClose, ch.remote))
	case !gone:
		r.to(numbered(kind, ch.client), f.Rest)
	}
	return nil
}

func (*relayed) end(error) {}
