package mux

import (
	"context"
	"encoding/binary"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
)

// Client is the connection of the master at path, for channels of any kind. Closing
// it leaves the master alone. Without a socket the error is os.ErrNotExist, else
// an *Error.
func Client(ctx context.Context, path string) (*ssh.Client, error) {
	l, err := dial(ctx, path)
	if err != nil {
		return nil, err
	}
	return l.channels().Client(), nil
}

// channels gives a link channels. Who is logged in where, and how, only the master knows.
func (l *link) channels() *channel.Named {
	return &channel.Named{Conn: channel.New(carrier{l}, nil, 0), Net: l.conn}
}

// carrier carries SSH's connection protocol through a link.
type carrier struct{ *link }

// Receive gives the next packet; see channel.Carrier.
func (c carrier) Receive(old []byte) ([]byte, error) {
	p, err := c.packet(old)
	if err != nil {
		c.lost.Store(true)
	}
	return p, err
}

// Send sends packets.
func (c carrier) Send(packets ...[]byte) error {
	for _, p := range packets {
		if err := c.send([]byte{0}, p); err != nil {
			return err
		}
	}
	return nil
}

// SendData sends data in packets; see channel.Carrier.
func (c carrier) SendData(head, data []byte, most int) error {
	for len(data) > 0 {
		part := data[:min(len(data), most)]
		data = data[len(part):]
		begin := binary.BigEndian.AppendUint32(append([]byte{0}, head...), uint32(len(part)))
		if err := c.send(begin, part); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the link.
func (c carrier) Close() error { return c.conn.Close() }
