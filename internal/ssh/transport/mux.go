package transport

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Mux gives the connection channels, after Authenticate. As with
// ssh.NewClientConn, both Go channels must be serviced. What was asked for ahead
// must be asked for again, in the same words: it is compared with what was sent,
// and not sent again.
func (c *Conn) Mux(user string) (ssh.Conn, <-chan ssh.NewChannel, <-chan *ssh.Request, error) {
	s := &socket{Conn: c.net, c: c, ahead: c.sent}
	s.change.L = &s.mu
	s.give(hello)
	s.give(proxy)
	conn, chans, reqs, err := ssh.NewControlClientConn(s)
	if err != nil {
		return nil, nil, nil, err
	}
	return &muxed{Conn: conn, c: c, user: user}, chans, reqs, nil
}

// A control master's answers (OpenSSH's PROTOCOL.mux): hello with its version,
// and "from now on packets".
var (
	hello = []byte{0, 0, 0, 1, 0, 0, 0, 4}
	proxy = []byte{0x80, 0, 0, 0xf, 0, 0, 0, 0}
)

// muxed knows what x/crypto does not know of such connections.
type muxed struct {
	ssh.Conn
	c    *Conn
	user string
}

func (m *muxed) User() string          { return m.user }
func (m *muxed) SessionID() []byte     { return m.c.session }
func (m *muxed) ClientVersion() []byte { return []byte(m.c.ours) }
func (m *muxed) ServerVersion() []byte { return []byte(m.c.theirs) }

// socket is what x/crypto takes for a control master's: packets with their
// length before them. Reading goes on to the network only in Read, and writing
// in Write, so it needs no goroutine.
type socket struct {
	net.Conn // addresses and deadlines
	c        *Conn
	greeted  int    // of two requests of x/crypto's
	rest     []byte // of the packet that is being read

	mu     sync.Mutex
	change sync.Cond
	ahead  [][]byte // sent already, and not yet asked for
	closed bool
}

// give makes a packet the next to be read.
func (s *socket) give(body []byte) {
	s.rest = append(binary.BigEndian.AppendUint32(s.rest, uint32(len(body))), body...)
}

// Read gives the next packet.
func (s *socket) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		packet, err := s.c.next()
		if err != nil {
			return 0, err
		}
		if !s.await(packet) {
			return 0, io.EOF
		}
		s.rest = binary.BigEndian.AppendUint32(s.rest[:0], uint32(1+len(packet)))
		s.rest = append(append(s.rest, 0), packet...)
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// await holds an answer back until x/crypto has asked for it; false when the
// connection was closed.
func (s *socket) await(packet []byte) bool {
	if packet[0] <= msgChannelOpen || packet[0] > lastChannelMessage {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && s.early(packet[0]) {
		s.change.Wait()
	}
	return !s.closed
}

// early tells whether a channel's packet comes before its question: the answer
// to the first packet sent ahead may follow that, all others follow the last
// one that is a question.
func (s *socket) early(kind byte) bool {
	if len(s.ahead) == 0 || s.ahead[0][0] == msgChannelEOF {
		return false
	}
	answer := kind == msgChannelConfirm || kind == msgChannelFailure
	return !answer || s.ahead[0][0] == msgChannelOpen
}

var errOtherWords = errors.New("ssh: what was asked for ahead is asked for in other words")

// Write takes one packet, behind its length and the length of no padding.
func (s *socket) Write(p []byte) (int, error) {
	const head = 5
	if s.greeted < 2 {
		s.greeted++
		return len(p), nil
	}
	if len(p) <= head {
		return 0, errShort
	}
	packet := p[head:]
	if skip, err := s.sentAhead(packet); skip || err != nil {
		return len(p), err
	}
	s.c.queue(packet)
	if err := s.c.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// sentAhead tells whether a packet was sent ahead.
func (s *socket) sentAhead(packet []byte) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ahead) == 0 || packet[0] < msgChannelOpen {
		return false, nil
	}
	if !bytes.Equal(packet, s.ahead[0]) {
		if s.ahead[0][0] == msgChannelEOF { // over before x/crypto came to say so
			s.ahead = nil
			return false, nil
		}
		return false, errOtherWords
	}
	s.ahead = s.ahead[1:]
	s.change.Broadcast()
	return true, nil
}

// Close also wakes a Read that holds an answer back.
func (s *socket) Close() error {
	s.mu.Lock()
	s.closed = true
	s.change.Broadcast()
	s.mu.Unlock()
	return s.Conn.Close()
}
