package channel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// Carrier carries the packets of a connection in order.
type Carrier interface {
	// Receive waits for a packet, which is not empty. It may reuse the memory of an old one that
	// nobody needs any more. No two goroutines call it at once.
	Receive(old []byte) ([]byte, error)
	// Send sends packets, as many as it can at once. They may be reused afterwards.
	Send(messages ...[]byte) error
	// SendData sends data as messages that consist of head and a string of at most most bytes; all
	// of them at once, if it can. Both may be reused afterwards.
	SendData(head, data []byte, most int) error
	// Close ends the connection, and a Receive that waits.
	Close() error
}

// Conn is a connection with its channels. It reads from the first channel or request on, until it
// is closed.
type Conn struct {
	carrier Carrier
	begin   sync.Once
	life    context.Context // until nothing is read any more
	die     context.CancelCauseFunc

	trip       atomic.Int64 // shortest time until a channel was opened; 0: none was
	reader     atomic.Int32 // how many goroutines have read before the one that does
	requesting sync.Mutex   // of global requests: they leave in the order of waiting

	mu       sync.Mutex
	first    sync.Cond // the first channel is there, or the connection ends
	ahead    [][]byte  // already sent, and not yet requested
	asked    int       // answers that ahead gets, until there is the first channel
	next     uint32    // number of the next channel
	channels map[uint32]member
	busy     *Channel                  // channel whose Handler the reader runs, if that may wait
	waiting  []chan answer             // for the answers to global requests, in their order
	wanted   func(ssh.NewChannel) bool // see Accept
	over     bool
}

// member is one channel of a connection.
type member interface {
	// take handles a message; f holds the fields after the channel's number.
	take(kind byte, f *Fields) error
	// end is the end of the connection.
	end(err error)
}

// answer is the answer to a global request.
type answer struct {
	ok   bool
	data []byte
}

// New makes a connection over a carrier. Packets that were sent ahead belong to its first channel
// and are the beginning of its requests, in the same words: they are compared, and not sent again.
// The server answers asked of them, and numbers that channel 0.
func New(c Carrier, ahead [][]byte, asked int) *Conn {
	conn := &Conn{carrier: c, ahead: ahead, asked: asked}
	conn.life, conn.die = context.WithCancelCause(context.Background())
	conn.first.L = &conn.mu
	return conn
}

// Named is a connection in the form of package ssh: its channels, and the names of its ends, as far
// as they are known.
type Named struct {
	*Conn
	Net          net.Conn
	Login        string // user of the login
	Session      []byte // the first exchange hash (RFC 4253 section 7.2)
	Ours, Theirs string // version lines
	// Suite has the algorithms of the first key exchange.
	Suite ssh.NegotiatedAlgorithms
}

var _ ssh.Conn = (*Named)(nil)

func (n *Named) User() string          { return n.Login }
func (n *Named) SessionID() []byte     { return n.Session }
func (n *Named) ClientVersion() []byte { return []byte(n.Ours) }
func (n *Named) ServerVersion() []byte { return []byte(n.Theirs) }
func (n *Named) LocalAddr() net.Addr   { return n.Net.LocalAddr() }
func (n *Named) RemoteAddr() net.Addr  { return n.Net.RemoteAddr() }

// Client returns x/crypto's client with these channels.
func (n *Named) Client() *ssh.Client {
	chans, reqs := make(chan ssh.NewChannel), make(chan *ssh.Request)
	close(chans) // the server's wishes are refused already
	close(reqs)
	return ssh.NewClient(n, chans, reqs)
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.life.Done() }

// Life ends with the connection, whose reason is its cause. It begins to read.
func (c *Conn) Life() context.Context {
	c.start()
	return c.life
}

// Wait waits for the end of the connection and returns its reason.
func (c *Conn) Wait() error {
	<-c.Life().Done()
	return context.Cause(c.life)
}

// Close ends the connection.
func (c *Conn) Close() error {
	c.mu.Lock()
	c.over = true
	c.first.Broadcast()
	c.mu.Unlock()
	err := c.carrier.Close()
	c.begin.Do(func() { c.end(io.EOF) }) // nothing was ever read
	return err
}

func (c *Conn) start() { c.begin.Do(func() { go c.read(0) }) }

// read reads until the end of the connection, or until another goroutine does.
func (c *Conn) read(reader int32) {
	var p []byte
	var err error
	for err == nil {
		if p, err = c.carrier.Receive(p); err == nil {
			err = c.take(p)
		}
		if c.reader.Load() != reader {
			return
		}
	}
	c.carrier.Close()
	c.end(err)
}

// end wakes everybody who waits.
func (c *Conn) end(err error) {
	c.mu.Lock()
	c.over = true
	open, waiting := c.channels, c.waiting
	c.channels, c.waiting = nil, nil
	c.mu.Unlock()
	for _, ch := range open {
		ch.end(err)
	}
	for _, w := range waiting {
		close(w)
	}
	c.die(err)
}

// take handles one packet.
func (c *Conn) take(p []byte) error {
	f := FieldsOf(p)
	switch kind := p[0]; {
	case kind == msgGlobalRequest:
		return c.refuseRequest(f)
	case kind == msgRequestSuccess, kind == msgRequestFailure:
		c.answered(answer{kind == msgRequestSuccess, bytes.Clone(f.Rest)})
		return nil
	case kind == msgOpen:
		return c.offered(f)
	case kind > msgOpen && kind <= msgFailure:
		number := f.Number()
		if f.Err() != nil {
			return ErrShort
		}
		ch := c.channel(number)
		if ch == nil {
			return fmt.Errorf("ssh: message %d for channel %d, which is not open", kind, number)
		}
		return ch.take(kind, f)
	default:
		return fmt.Errorf("ssh: unexpected message type %d", kind)
	}
}

// channel returns the channel with a number. Answers to the first one's packets that were sent
// ahead may come before that one is opened.
func (c *Conn) channel(number uint32) member {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.asked > 0 && !c.over {
		c.first.Wait()
	}
	return c.channels[number]
}

// refuseRequest refuses a global request; for a keepalive that is a valid answer.
func (c *Conn) refuseRequest(f *Fields) error {
	f.Text()
	if reply := f.Bool(); f.Err() != nil || !reply {
		return f.Err()
	}
	return c.carrier.Send([]byte{msgRequestFailure})
}

// answered gives the first waiting caller the answer to a global request. As with ssh, answers that
// nobody waits for are dropped.
func (c *Conn) answered(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.waiting) > 0 {
		c.waiting[0] <- a
		c.waiting = c.waiting[1:]
	}
}

// answeredAfter notes the time of an answer that needs nothing but the path.
func (c *Conn) answeredAfter(took time.Duration) {
	if trip := c.roundTrip(); trip == 0 || took < trip {
		c.trip.Store(int64(took))
	}
}

// roundTrip returns the shortest time of such an answer, 0 before the first one.
func (c *Conn) roundTrip() time.Duration { return time.Duration(c.trip.Load()) }

// Stuck reports whether reading has stopped because a Handler has not taken its data yet.
func (c *Conn) Stuck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.busy != nil
}

// goOn starts another reader if a Handler holds up the present one while an answer is awaited.
func (c *Conn) goOn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy != nil {
		c.busy = nil
		go c.read(c.reader.Add(1))
	}
}

// SendRequest makes a global request (RFC 4254 section 4), and returns whether the server granted
// it, with its answer. Without wantReply it does not wait.
func (c *Conn) SendRequest(name string, wantReply bool, specific []byte) (bool, []byte, error) {
	c.start()
	p := append(AppendBool(AppendText([]byte{msgGlobalRequest}, name), wantReply), specific...)
	if !wantReply {
		return false, nil, c.carrier.Send(p)
	}
	came := make(chan answer, 1)
	if err := c.ask(came, p); err != nil {
		return false, nil, err
	}
	c.goOn()
	a, ok := <-came
	if !ok {
		return false, nil, io.EOF
	}
	return a.ok, a.data, nil
}

// ask sends a request whose answer goes to came.
func (c *Conn) ask(came chan answer, request []byte) error {
	c.requesting.Lock()
	defer c.requesting.Unlock()
	c.mu.Lock()
	over := c.over
	if !over {
		c.waiting = append(c.waiting, came)
	}
	c.mu.Unlock()
	if over {
		return io.EOF
	}
	return c.carrier.Send(request)
}

var errOtherWords = errors.New("ssh: the request differs from the one that was sent ahead")

// request sends a packet, unless it was sent ahead.
func (c *Conn) request(message []byte) error {
	if ahead, err := c.sentAhead(message); ahead || err != nil {
		return err
	}
	return c.carrier.Send(message)
}

// sendData sends data, which never is sent ahead; the message that none would come may have been.
func (c *Conn) sendData(head, data []byte, most int) error {
	if _, err := c.sentAhead(head); err != nil {
		return err
	}
	return c.carrier.SendData(head, data, most)
}

// sentAhead reports whether a packet was sent ahead.
func (c *Conn) sentAhead(message []byte) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(c.ahead) == 0:
		return false, nil
	case bytes.Equal(message, c.ahead[0]):
		c.ahead = c.ahead[1:]
		return true, nil
	case c.ahead[0][0] == msgEOF: // something comes before it after all
		c.ahead = nil
		return false, nil
	}
	return false, errOtherWords
}
