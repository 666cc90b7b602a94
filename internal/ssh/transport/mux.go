package transport

import (
	"net"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
)

// Mux gives the connection channels, after Authenticate. What was asked for ahead
// must be asked for again, by the first channel and in the same words: it is
// compared with what was sent, and not sent again.
func (c *Conn) Mux(user string) *Muxed {
	answers := 0
	if len(c.sent) > 0 {
		answers = 1 // to "exec"
	}
	return &Muxed{Conn: channel.New(carrier{c}, c.sent, answers), c: c, user: user}
}

// Muxed is a connection with channels.
type Muxed struct {
	*channel.Conn
	c    *Conn
	user string
}

var _ ssh.Conn = (*Muxed)(nil)

// User is who is logged in.
func (m *Muxed) User() string { return m.user }

// SessionID is the first exchange hash (RFC 4253 section 7.2).
func (m *Muxed) SessionID() []byte { return m.c.session }

// ClientVersion is our version line.
func (m *Muxed) ClientVersion() []byte { return []byte(m.c.ours) }

// ServerVersion is the server's.
func (m *Muxed) ServerVersion() []byte { return []byte(m.c.theirs) }

// carrier is a connection that is logged in.
type carrier struct{ *Conn }

// Receive gives the next packet for a channel; see channel.Carrier.
func (c carrier) Receive() ([]byte, error) { return c.next() }

// Send sends packets, or keeps them until a key exchange is over.
func (c carrier) Send(packets ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range packets {
		c.queueLocked(p, nil)
	}
	return c.flushLocked()
}

// SendData sends data in packets; see channel.Carrier.
func (c carrier) SendData(head, data []byte, most int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kexInit == nil {
		const around = 64 // of a packet of data
		c.out = withBulk(c.out, len(data)+(len(data)/most+1)*around)
	}
	var text [16]byte
	for len(data) > 0 {
		part := data[:min(len(data), most)]
		data = data[len(part):]
		c.queueLocked(channel.AppendNumber(append(text[:0], head...), uint32(len(part))), part)
	}
	return c.flushLocked()
}

// LocalAddr is our end's address.
func (m *Muxed) LocalAddr() net.Addr { return m.c.net.LocalAddr() }

// RemoteAddr is the server's.
func (m *Muxed) RemoteAddr() net.Addr { return m.c.net.RemoteAddr() }

// Client is x/crypto's client with these channels.
func (m *Muxed) Client() *ssh.Client { return channel.Client(m) }
