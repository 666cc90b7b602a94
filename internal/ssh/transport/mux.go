package transport

import "sshpace/internal/ssh/channel"

// Mux gives the connection channels, after Authenticate. The first channel must repeat the requests
// that were sent ahead, in the same words: they are compared with the sent ones, and not sent
// again. Only the algorithms of the configuration are kept: a connection may last long, and the
// rest holds what a login needs.
func (c *Conn) Mux(user string) *channel.Named {
	o := c.config
	c.config = &Config{KeyExchanges: o.KeyExchanges, Ciphers: o.Ciphers, MACs: o.MACs, HostKeys: o.HostKeys}
	c.theirs, c.sigAlgs = KexInit{}, nil
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

// Receive returns the next packet for a channel; see channel.Carrier.
func (c carrier) Receive(old []byte) ([]byte, error) {
	if old == nil { // another reader's packet may be in use
		c.in.lend()
	}
	return c.next()
}

// Send sends packets, or keeps them until a key exchange is over.
func (c carrier) Send(packets ...[]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range packets {
		c.makeRoom(len(p), 1)
		c.queueLocked(p, nil)
	}
	return c.flushLocked()
}

// SendData sends data in packets; see channel.Carrier.
func (c carrier) SendData(head, data []byte, most int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.makeRoom(len(data), len(data)/most+1)
	var text [16]byte
	for len(data) > 0 {
		part := data[:min(len(data), most)]
		data = data[len(part):]
		c.queueLocked(channel.AppendNumber(append(text[:0], head...), uint32(len(part))), part)
	}
	return c.flushLocked()
}
