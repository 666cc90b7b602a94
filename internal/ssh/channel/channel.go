package channel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// Handler receives the messages of a server on a channel. Its methods are called one after the
// other, and only Data may wait. Then nothing is read as long as the channel is the only one of its
// connection and asks for nothing: the server waits, and no output fills memory. Otherwise up to a
// window of data is kept, and all other channels continue.
type Handler interface {
	// Data takes output of a command, standard output or standard error, and returns how much of it
	// needs no room any more; the rest is reported to Channel.Took later. data is valid during the
	// call.
	Data(stderr bool, data []byte) (took int)
	// EOF is the end of the data.
	EOF()
	// Request is a request that the server makes, such as exit-status.
	Request(name string, payload []byte)
	// Closed is the end of the channel, or of the connection. Nothing follows.
	Closed()
}

// Channel is a channel that is open, or has been.
type Channel struct {
	conn   *Conn
	to     Handler
	waits  bool // its Data may wait
	local  uint32
	remote uint32 // set before opened is sent
	began  time.Time

	telling bool   // a goroutine runs the Handler; guarded by conn.mu, as the next
	news    []news // messages that it has not received yet

	opened  chan error
	asking  sync.Mutex // of requests with answers: one at a time
	replies chan bool
	done    chan struct{}
	sending sync.Mutex // of a message: none follows the end

	mu        sync.Mutex
	room      sync.Cond // there is room at the server, or the channel has ended
	isOpen    bool
	asked     int // requests that were not answered yet
	pace      pace
	window    uint32 // how much the server takes
	most      uint32 // and at most in one packet
	grant     grant  // how much the server may send
	over      bool   // it has ended, or we have closed it
	sentEOF   bool
	sentClose bool
}

// Open opens a channel, and waits for the server's answer: a refusal is an *ssh.OpenChannelError.
func (c *Conn) Open(kind string, specific []byte, to Handler) (*Channel, error) {
	return c.open(context.Background(), kind, specific, to, true)
}

func (c *Conn) open(ctx context.Context, kind string, specific []byte, to Handler, waits bool) (*Channel, error) {
	ch := c.newChannel(to, waits)
	if err := c.add(ch); err != nil {
		return nil, err
	}
	ch.began = time.Now()
	if err := c.request(Open(kind, ch.local, specific)); err != nil {
		c.remove(ch.local)
		return nil, err
	}
	c.start()
	c.goOn()
	select {
	case err := <-ch.opened:
		if err != nil {
			return nil, err
		}
		return ch, nil
	case <-ctx.Done():
		go func() {
			if <-ch.opened == nil { // nobody wants it any more
				_ = ch.Close()
			}
		}()
		return nil, context.Cause(ctx)
	}
}

func (c *Conn) newChannel(to Handler, waits bool) *Channel {
	ch := &Channel{conn: c, to: to, waits: waits, opened: make(chan error, 1), replies: make(chan bool, 1), done: make(chan struct{}), grant: grant{size: window, allowed: window}}
	ch.room.L = &ch.mu
	return ch
}

// add gives a channel its number. The first one's requests may have been sent ahead.
func (c *Conn) add(ch *Channel) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch.asked, c.asked = c.asked, 0
	defer c.first.Broadcast()
	return c.number(ch, &ch.local)
}

// number gives a member of the connection its number. The caller holds the lock.
func (c *Conn) number(m member, number *uint32) error {
	if c.over {
		return io.EOF
	}
	if c.channels == nil {
		c.channels = make(map[uint32]member, 1)
	}
	*number = c.next
	c.channels[c.next] = m
	c.next++
	return nil
}

func (c *Conn) remove(number uint32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.channels, number)
}

// Done is closed when the channel has ended.
func (ch *Channel) Done() <-chan struct{} { return ch.done }

// end ends a channel: nobody waits any more.
func (ch *Channel) end(err error) {
	ch.mu.Lock()
	ch.over = true
	ch.pace.stop()
	ch.room.Broadcast()
	ch.mu.Unlock()
	select {
	case ch.opened <- err:
	default:
	}
	_ = ch.notify(news{kind: msgClose})
}

// news is a message for a Handler.
type news struct {
	kind byte   // of the message; msgClose is also the end of the connection
	name string // of a request
	data []byte
	in   *block // memory of data that waits; nil: another one
}

// waits returns the message in memory of its own.
func (n news) waits() news {
	if len(n.data) < maxPacket/2 || len(n.data) > maxPacket {
		n.data = bytes.Clone(n.data)
		return n
	}
	n.in = blocks.Get().(*block)
	n.data = n.in[:copy(n.in[:], n.data)]
	return n
}

// notify passes a message to the Handler, after all earlier ones. The reader does so itself if that
// holds up nobody else.
func (ch *Channel) notify(n news) error {
	if !ch.waits {
		return ch.call(n)
	}
	c := ch.conn
	c.mu.Lock()
	alone := len(c.channels) <= 1 && c.wanted == nil && !ch.telling && !ch.awaits()
	switch {
	case alone:
		c.busy = ch
	default:
		if ch.news = append(ch.news, n.waits()); !ch.telling {
			go ch.tellRest()
		}
	}
	ch.telling = true
	c.mu.Unlock()
	if !alone {
		return nil
	}
	err := ch.call(n)
	ch.tellRest()
	return err
}

// tellRest passes on the messages that have arrived meanwhile.
func (ch *Channel) tellRest() {
	c := ch.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(ch.news) > 0 {
		n := ch.news[0]
		ch.news = ch.news[1:]
		c.mu.Unlock()
		_ = ch.call(n) // the reader notices the end of the connection
		if n.in != nil {
			blocks.Put(n.in)
		}
		c.mu.Lock()
	}
	if ch.telling = false; c.busy == ch {
		c.busy = nil
	}
}

func (ch *Channel) call(n news) error {
	switch n.kind {
	case msgEOF:
		ch.to.EOF()
	case msgRequest:
		ch.to.Request(n.name, n.data)
	case msgClose:
		ch.to.Closed()
		close(ch.done)
	default:
		return ch.took(ch.to.Data(n.kind == msgExtendedData, n.data))
	}
	return nil
}

// take handles a message; f holds the fields after the channel's number.
func (ch *Channel) take(kind byte, f *Fields) error {
	if !ch.isOpen && kind != msgConfirmation && kind != msgOpenFailure {
		return fmt.Errorf("ssh: message %d for a channel that is not open yet", kind)
	}
	switch kind {
	case msgConfirmation:
		return ch.confirmed(f)
	case msgOpenFailure:
		return ch.refused(f)
	case msgWindowAdjust:
		return ch.grow(f)
	case msgData, msgExtendedData:
		return ch.receive(kind, f)
	case msgEOF:
		return ch.notify(news{kind: kind})
	case msgClose:
		ch.conn.remove(ch.local)
		err := ch.Close()
		ch.end(io.EOF)
		return err
	case msgRequest:
		return ch.request(f)
	default:
		return ch.reply(kind == msgSuccess)
	}
}

var (
	errTwice  = errors.New("ssh: a channel is answered for twice")
	errNumber = errors.New("ssh: the first channel has another number than this server is known to use")
)

func (ch *Channel) confirmed(f *Fields) error {
	remote, room, most := f.Number(), f.Number(), f.Number()
	switch {
	case f.Err() != nil:
		return ErrShort
	case ch.isOpen:
		return errTwice
	case most == 0:
		return errors.New("ssh: a channel for packets of 0 bytes")
	case ch.asked > 0 && remote != 0:
		return errNumber
	}
	if ch.local > 0 { // the first may have been asked for ahead
		ch.conn.answeredAfter(time.Since(ch.began))
	}
	ch.mu.Lock()
	ch.remote, ch.window, ch.most, ch.isOpen = remote, room, min(most, maxPacket), true
	ch.pace.granted(room)
	ch.mu.Unlock()
	ch.opened <- nil
	return nil
}

func (ch *Channel) refused(f *Fields) error {
	reason, text := f.Number(), f.Text()
	if f.Err() != nil {
		return ErrShort
	}
	if ch.isOpen {
		return errTwice
	}
	ch.conn.remove(ch.local)
	ch.end(&ssh.OpenChannelError{Reason: ssh.RejectionReason(reason), Message: strings.ToValidUTF8(string(text), "?")})
	return nil
}

func (ch *Channel) grow(f *Fields) error {
	n := f.Number()
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if f.Err() != nil || ch.window+n < ch.window {
		return errors.New("ssh: a window beyond 4 GiB") // RFC 4254 section 5.2
	}
	ch.window += n
	ch.pace.arrive(int(n))
	ch.room.Broadcast()
	return nil
}

// stderrCode is the only type of extended data (RFC 4254 section 5.2).
const stderrCode = 1

func (ch *Channel) receive(kind byte, f *Fields) error {
	known := true
	if kind == msgExtendedData {
		known = f.Number() == stderrCode
	}
	data := f.Text()
	if err := ch.admit(f, len(data)); err != nil || len(data) == 0 {
		return err
	}
	if !known {
		return ch.took(len(data))
	}
	return ch.notify(news{kind: kind, data: data})
}

// admit counts received bytes against the granted window.
func (ch *Channel) admit(f *Fields, n int) error {
	switch {
	case f.Err() != nil:
		return ErrShort
	case n > maxPacket:
		return fmt.Errorf("ssh: %d bytes of data in a packet; %d were allowed", n, maxPacket)
	}
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if allowed := ch.grant.allowed; !ch.grant.arrive(n) {
		return fmt.Errorf("ssh: %d bytes of data where %d were allowed", n, allowed)
	}
	return nil
}

// Took reports that n bytes of data need no room any more.
func (ch *Channel) Took(n int) { _ = ch.took(n) } // the reader notices the end of the connection

// took tells the server, but not for every piece.
func (ch *Channel) took(n int) error {
	ch.mu.Lock()
	more := uint32(0)
	if !ch.over {
		if !ch.waits { // what reads it seldom stops
			ch.grant.expect(ch.conn.roundTrip())
		}
		more = ch.grant.take(n)
	}
	ch.mu.Unlock()
	if more > 0 {
		if err := ch.transmit(AppendNumber(numbered(msgWindowAdjust, ch.remote), more)); err != io.EOF {
			return err
		}
	}
	return nil
}

// request handles a request of the server. None that wants an answer is granted.
func (ch *Channel) request(f *Fields) error {
	name, reply := f.Text(), f.Bool()
	if f.Err() != nil {
		return ErrShort
	}
	if err := ch.notify(news{kind: msgRequest, name: string(name), data: f.Rest}); err != nil || !reply {
		return err
	}
	if err := ch.transmit(numbered(msgFailure, ch.remote)); err != io.EOF {
		return err
	}
	return nil
}

func (ch *Channel) reply(ok bool) error {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	if ch.asked == 0 {
		return errors.New("ssh: an answer to no request")
	}
	ch.asked--
	select {
	case ch.replies <- ok:
	default: // nobody waits for earlier ones
	}
	return nil
}

// SendRequest makes a request, and waits for the answer if one is wanted. io.EOF is the end of the
// channel before it.
func (ch *Channel) SendRequest(name string, wantReply bool, specific []byte) (bool, error) {
	return ch.SendThen(name, wantReply, specific, func() {})
}

// SendThen is SendRequest that calls sent once the request has left.
func (ch *Channel) SendThen(name string, wantReply bool, specific []byte, sent func()) (bool, error) {
	if wantReply {
		ch.asking.Lock()
		defer ch.asking.Unlock()
		ch.ask(1)
	}
	ahead, err := ch.send(Request(ch.remote, name, wantReply, specific))
	if err != nil {
		return false, err
	}
	sent()
	switch {
	case !wantReply:
		return false, nil
	case ahead:
		ch.ask(-1) // it is counted already
	}
	ch.conn.goOn()
	select {
	case ok := <-ch.replies:
		return ok, nil
	case <-ch.done:
	}
	select {
	case ok := <-ch.replies:
		return ok, nil
	default:
		return false, io.EOF
	}
}

// awaits reports whether a request was not answered yet. One that is made later calls goOn.
func (ch *Channel) awaits() bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.asked > 0
}

func (ch *Channel) ask(n int) {
	ch.mu.Lock()
	ch.asked += n
	ch.mu.Unlock()
}

// send sends on a channel that has not ended, unless the packet was sent ahead.
func (ch *Channel) send(message []byte) (ahead bool, err error) {
	if ahead, err := ch.conn.sentAhead(message); ahead || err != nil {
		return ahead, err
	}
	return false, ch.transmit(message)
}

// transmit sends on a channel that has not ended.
func (ch *Channel) transmit(message []byte) error {
	ch.sending.Lock()
	defer ch.sending.Unlock()
	if ch.isOver() {
		return io.EOF
	}
	return ch.conn.carrier.Send(message)
}

func (ch *Channel) isOver() bool {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	return ch.over
}

// atOnce is how many packets of data leave together: as much as sshd reads at once (packet.c,
// ssh_packet_process_read).
const atOnce = 8

// Write sends data as the server takes it; io.EOF is the end of the channel.
func (ch *Channel) Write(p []byte) (sent int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	var head []byte
	for len(p) > 0 {
		n, err := ch.reserve(len(p))
		if err != nil {
			return sent, err
		}
		if head == nil {
			head = numbered(msgData, ch.remote)
		}
		if err := ch.transmitData(head, p[:n]); err != nil {
			return sent, err
		}
		sent += n
		p = p[n:]
	}
	return sent, nil
}

// transmitData is transmit of data.
func (ch *Channel) transmitData(head, data []byte) error {
	ch.sending.Lock()
	defer ch.sending.Unlock()
	if ch.isOver() {
		return io.EOF
	}
	return ch.conn.sendData(head, data, int(ch.most))
}

// reserve waits for room and takes some of it.
func (ch *Channel) reserve(want int) (int, error) {
	ch.mu.Lock()
	defer ch.mu.Unlock()
	ch.pace.begin(ch.conn.roundTrip())
	for (ch.window == 0 || ch.pace.full()) && !ch.over {
		ch.pace.wait(&ch.room)
	}
	if ch.over || ch.sentEOF {
		return 0, io.EOF
	}
	n := min(uint32(min(want, atOnce*maxPacket)), ch.window, atOnce*ch.most)
	ch.window -= n
	ch.pace.send(int(n))
	return int(n), nil
}

// CloseWrite reports that no more data follows.
func (ch *Channel) CloseWrite() error {
	ch.mu.Lock()
	done := ch.sentEOF || ch.over
	ch.sentEOF = true
	ch.mu.Unlock()
	if done {
		return nil
	}
	_, err := ch.send(EOF(ch.remote))
	return err
}

// Close asks for the end of the channel. It has ended when the server agrees.
func (ch *Channel) Close() error {
	ch.mu.Lock()
	done := ch.sentClose
	ch.sentClose, ch.over = true, true
	ch.room.Broadcast()
	ch.mu.Unlock()
	if done {
		return nil
	}
	ch.sending.Lock()
	defer ch.sending.Unlock()
	return ch.conn.carrier.Send(numbered(msgClose, ch.remote))
}
