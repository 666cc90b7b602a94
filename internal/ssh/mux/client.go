package mux

import (
	"context"
	"encoding/binary"
	"errors"
	"net"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/line"
	"sshpace/internal/ssh/session"
)

// Master is the connection of a live ControlMaster, with channels of our own. Only the master knows
// the details of the login. Closing it leaves the master alone.
type Master struct {
	*session.Connection
	path string
}

var _ line.Line = (*Master)(nil)

// Open connects to the master at path. Without a socket the error is os.ErrNotExist, otherwise an
// *Error.
func Open(ctx context.Context, path string) (*Master, error) {
	l, err := dial(ctx, path)
	if err != nil {
		return nil, err
	}
	m := &Master{path: path, Connection: &session.Connection{
		Named: &channel.Named{Conn: channel.New(carrier{l}, nil, 0), Net: l.conn}, Lost: l.loss,
		Result: fleet.Outcome{Engine: engineName, Addr: path},
	}}
	m.Beside = m
	return m, nil
}

// Open opens a channel. Sessions are not requested in proxy mode: a master whose server gives no
// further session ends then, with all its sessions. A master that hangs loses the line.
func (m *Master) Open(ctx context.Context, a line.Ask) (line.Channel, error) {
	if a.Kind != line.Forward {
		return pass(ctx, m.path, a)
	}
	ch, err := m.Connection.Open(ctx, a)
	if err != nil && ctx.Err() != nil && hangs(m.path) {
		m.Close()
	}
	return ch, err
}

// hangs reports whether a master that lives answers nobody.
func hangs(path string) bool {
	l, err := connect(context.Background(), path)
	if err == nil {
		l.conn.Close()
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// carrier carries SSH's connection protocol through a link.
type carrier struct{ *link }

// Receive returns the next packet; see channel.Carrier.
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
	var all net.Buffers
	for len(data) > 0 {
		part := data[:min(len(data), most)]
		data = data[len(part):]
		begin := binary.BigEndian.AppendUint32(append([]byte{0}, head...), uint32(len(part)))
		all = append(all, framed(begin, len(part)), part)
	}
	return c.write(all)
}

// Close ends the link.
func (c carrier) Close() error { return c.conn.Close() }
