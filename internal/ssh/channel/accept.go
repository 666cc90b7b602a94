package channel

import (
	"bytes"
	"io"

	"golang.org/x/crypto/ssh"
)

// Accept lets the server open channels. wanted is called for each; it must not wait, and reports
// whether it will accept or reject the channel, then or later.
func (c *Conn) Accept(wanted func(ssh.NewChannel) bool) {
	c.mu.Lock()
	c.wanted = wanted
	c.mu.Unlock()
	c.start()
	c.goOn()
}

// offer is a channel that the server has opened.
type offer struct {
	conn   *Conn
	kind   string
	data   []byte
	remote uint32
	window uint32
	most   uint32
}

var _ ssh.NewChannel = (*offer)(nil)

// offered handles a channel that the server opens.
func (c *Conn) offered(f *Fields) error {
	o := &offer{conn: c, kind: string(f.Text()), remote: f.Number()}
	if f.Err() != nil {
		return ErrShort
	}
	o.window, o.most = f.Number(), f.Number() // 0 if they are missing
	o.data = bytes.Clone(f.Rest)
	c.mu.Lock()
	wanted := c.wanted
	c.mu.Unlock()
	if o.most > 0 && wanted != nil && wanted(o) {
		return nil
	}
	return o.Reject(ssh.Prohibited, "not wanted")
}

func (o *offer) ChannelType() string { return o.kind }

func (o *offer) ExtraData() []byte { return o.data }

// Reject refuses the channel.
func (o *offer) Reject(reason ssh.RejectionReason, text string) error {
	p := AppendNumber(numbered(msgOpenFailure, o.remote), uint32(reason))
	return o.conn.carrier.Send(AppendText(AppendText(p, text), ""))
}

// Accept confirms the channel.
func (o *offer) Accept() (ssh.Channel, <-chan *ssh.Request, error) {
	s := newStream()
	ch := o.conn.newChannel(s, false)
	s.Channel, ch.isOpen, ch.remote, ch.window, ch.most = ch, true, o.remote, o.window, min(o.most, maxPacket)
	ch.pace.granted(o.window)
	if err := o.conn.add(ch); err != nil {
		return nil, nil, io.EOF
	}
	p := numbered(msgConfirmation, o.remote)
	for _, n := range []uint32{ch.local, window, maxPacket} {
		p = AppendNumber(p, n)
	}
	if err := o.conn.carrier.Send(p); err != nil {
		return nil, nil, err
	}
	return s, s.requests, nil
}
