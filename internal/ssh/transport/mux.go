package transport

import "sshpace/internal/ssh/channel"

// Mux gives the connection channels, after Authenticate. The first channel must repeat the requests
// that were sent ahead, in the same words: they are compared with the sent ones, and not sent
// again.
func (c *Conn) Mux(user string) *channel.Named {
	answers := 0
	if len(c.sent) > 0 {
		answers = 1 // to "exec"
	}
	return &channel.Named{
		Conn: channel.New(carrier{c}, c.sent, answers), Net: c.net, Login: user, Session: c.session, Ours: c.ours, Theirs: c.greeting.Version,
		Suite: c.Negotiated(),
	}
}

// carrier is a connection after the login.
type carrier struct{ *Conn }

// Receive returns the next packet for a channel, in memory of its own; see channel.Carrier.
func (c carrier) Receive([]byte) ([]byte, error) { return c.next() }

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
