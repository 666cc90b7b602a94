package mux

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Messages of RFC 4254. Fields after the tags are as there.
type (
	openMsg struct {
		Type      string `sshtype:"90"`
		Sender    uint32
		Window    uint32
		MaxPacket uint32
		Specific  []byte `ssh:"rest"`
	}
	confirmMsg struct {
		Recipient uint32 `sshtype:"91"`
		Sender    uint32
		Window    uint32
		MaxPacket uint32
		Specific  []byte `ssh:"rest"`
	}
	failureMsg struct {
		Recipient uint32 `sshtype:"92"`
		Reason    uint32
		Text      string
		Language  string
	}
	adjustMsg struct {
		Recipient uint32 `sshtype:"93"`
		Bytes     uint32
	}
	dataMsg struct { // the data follows
		Recipient uint32 `sshtype:"94"`
		Length    uint32
	}
	eofMsg struct {
		Recipient uint32 `sshtype:"96"`
	}
	closeMsg struct {
		Recipient uint32 `sshtype:"97"`
	}
	requestMsg struct {
		Recipient uint32 `sshtype:"98"`
		Request   string
		WantReply bool
		Specific  []byte `ssh:"rest"`
	}
	requestFailedMsg struct {
		Recipient uint32 `sshtype:"100"`
	}
)

// The numbers of the messages that a server sends.
const (
	numConfirm  = 91
	numFailure  = 92
	numAdjust   = 93
	numData     = 94
	numExtended = 95
	numEOF      = 96
	numClose    = 97
	numRequest  = 98
	numSuccess  = 99
	numRefused  = 100
)

// window is how much may be on its way to us: what fills a gigabit over 15 ms.
const window = 2 << 20

// handler is told what the server sends on a channel. Its methods are called one
// after the other; data is valid during the call only.
type handler interface {
	data(extended bool, data []byte)
	eof()
	request(name string, payload []byte)
}

// channel is one channel, the only one of its link.
type channel struct {
	link *link
	to   handler

	opened  chan error // its opening: nil, *refused or the end of the link
	replies chan bool  // to requests, in their order
	ended   chan struct{}
	end     error // errClosed, *refused, or why the link ended

	mu      sync.Mutex
	room    *sync.Cond // remote window grew, or the channel ended
	peer    uint32
	window  uint32 // how much the server takes
	packet  uint32
	pending uint32 // taken and not yet told
	over    bool
}

// errClosed is the end of a channel that the server closed.
var errClosed = errors.New("closed by the server")

// refused is a server's answer to the opening of a channel.
type refused struct {
	reason uint32
	text   string
}

func (e *refused) Error() string {
	if e.text == "" {
		return fmt.Sprintf("the server refused the session (reason %d)", e.reason)
	}
	return "the server refused the session: " + e.text
}

// open asks for a channel and begins to read.
func (l *link) open(kind string, specific []byte, to handler) (*channel, error) {
	c := &channel{link: l, to: to, opened: make(chan error, 1), replies: make(chan bool, 16), ended: make(chan struct{})}
	c.room = sync.NewCond(&c.mu)
	err := l.sendPacket(openMsg{Type: kind, Window: window, MaxPacket: 32 << 10, Specific: specific}, nil)
	if err != nil {
		return nil, err
	}
	go c.read()
	return c, nil
}

// read takes messages until the channel or the link ends.
func (c *channel) read() {
	var err error
	for err == nil {
		var p []byte
		if p, err = c.link.packet(); err == nil {
			err = c.take(p)
		}
	}
	c.mu.Lock()
	c.over, c.end = true, err
	c.room.Broadcast()
	c.mu.Unlock()
	select {
	case c.opened <- err:
	default:
	}
	close(c.ended)
}

// take handles one message. errClosed is the end of the channel.
func (c *channel) take(p []byte) error {
	switch p[0] {
	case numConfirm, numFailure:
		return c.answered(p)
	case numAdjust:
		return c.grow(p)
	case numData, numExtended:
		return c.receive(p)
	case numEOF:
		c.to.eof()
	case numClose:
		c.link.sendPacket(closeMsg{c.peer}, nil) // the link ends anyway
		return errClosed
	case numRequest:
		return c.asked(p)
	case numSuccess, numRefused:
		select {
		case c.replies <- p[0] == numSuccess:
		default:
			return errors.New("a reply to no request")
		}
	}
	return nil
}

func (c *channel) answered(p []byte) error {
	if p[0] == numFailure {
		var m failureMsg
		if err := ssh.Unmarshal(p, &m); err != nil {
			return err
		}
		return &refused{m.Reason, m.Text}
	}
	var m confirmMsg
	if err := ssh.Unmarshal(p, &m); err != nil {
		return err
	}
	c.mu.Lock()
	c.peer, c.window, c.packet = m.Sender, m.Window, min(m.MaxPacket, 32<<10)
	c.mu.Unlock()
	select {
	case c.opened <- nil:
		return nil
	default:
		return errors.New("a second confirmation")
	}
}

func (c *channel) grow(p []byte) error {
	var m adjustMsg
	if err := ssh.Unmarshal(p, &m); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.window+m.Bytes < c.window {
		return errors.New("a window beyond 4 GiB")
	}
	c.window += m.Bytes
	c.room.Broadcast()
	return nil
}

func (c *channel) receive(p []byte) error {
	header := 9
	if p[0] == numExtended {
		header = 13
	}
	if len(p) < header {
		return errShort
	}
	c.to.data(p[0] == numExtended, p[header:])
	return nil
}

// took tells the server that n bytes of data need no room any more.
func (c *channel) took(n int) {
	c.mu.Lock()
	c.pending += uint32(n)
	told := c.pending
	if told < window/4 {
		told = 0
	}
	c.pending -= told
	c.mu.Unlock()
	if told > 0 {
		c.link.sendPacket(adjustMsg{c.peer, told}, nil) // the reader sees the end of the link
	}
}

func (c *channel) asked(p []byte) error {
	var m requestMsg
	if err := ssh.Unmarshal(p, &m); err != nil {
		return err
	}
	c.to.request(m.Request, m.Specific)
	if m.WantReply {
		return c.link.sendPacket(requestFailedMsg{c.peer}, nil)
	}
	return nil
}

// ask sends a request.
func (c *channel) ask(name string, reply bool, payload any) error {
	return c.link.sendPacket(requestMsg{c.peer, name, reply, ssh.Marshal(payload)}, nil)
}

// Write sends data as the server takes it.
func (c *channel) Write(p []byte) (sent int, err error) {
	for len(p) > 0 {
		n := c.reserve(len(p))
		if n == 0 {
			return sent, io.ErrClosedPipe
		}
		if err := c.link.sendPacket(dataMsg{c.peer, uint32(n)}, p[:n]); err != nil {
			return sent, err
		}
		sent += n
		p = p[n:]
	}
	return sent, nil
}

// reserve waits for room and takes some of it; 0: the channel has ended.
func (c *channel) reserve(want int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.window == 0 && !c.over {
		c.room.Wait()
	}
	if c.over {
		return 0
	}
	n := min(uint32(want), c.window, c.packet)
	c.window -= n
	return int(n)
}

// CloseWrite says that nothing follows.
func (c *channel) CloseWrite() error { return c.link.sendPacket(eofMsg{c.peer}, nil) }
