package mux

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"time"

	"sshpace/internal/fleet"
)

var errSocks = errors.New("no SOCKS request to connect")

// socks reads a request of SOCKS 4, 4a or 5 (RFC 1928), without a byte too much. A client has as
// much time for it as a server for a login. reply answers it.
func socks(conn io.ReadWriteCloser) (to place, reply func(ok bool) error, err error) {
	defer time.AfterFunc(fleet.ConnectTimeout, func() { conn.Close() }).Stop()
	r := &byteReader{r: conn}
	var answer func(ok bool) []byte
	switch r.take(1)[0] {
	case 4:
		to, answer = socks4(r)
	case 5:
		to, answer = socks5(r, conn)
	default:
		return to, nil, errSocks
	}
	if r.err != nil {
		return to, nil, r.err
	}
	return to, func(ok bool) error {
		_, err := conn.Write(answer(ok))
		return err
	}, nil
}

// byteReader reads fields; from the first error on all are zero.
type byteReader struct {
	r   io.Reader
	err error
}

func (b *byteReader) take(n int) []byte {
	p := make([]byte, n)
	if b.err == nil {
		_, b.err = io.ReadFull(b.r, p)
	}
	return p
}

// text reads up to a zero.
func (b *byteReader) text() string {
	const most = 255
	var p []byte
	for b.err == nil && len(p) < most {
		c := b.take(1)[0]
		if c == 0 {
			return string(p)
		}
		p = append(p, c)
	}
	b.err = errors.Join(b.err, errSocks)
	return ""
}

const cmdConnect = 1

func socks4(r *byteReader) (to place, answer func(ok bool) []byte) {
	head := r.take(7) // command, port, address
	r.text()          // user
	to = place{net.IP(head[3:]).String(), uint32(binary.BigEndian.Uint16(head[1:]))}
	if bytes.HasPrefix(head[3:], []byte{0, 0, 0}) && head[6] != 0 {
		to.host = r.text()
	}
	if head[0] != cmdConnect {
		r.err = errors.Join(r.err, errSocks)
	}
	return to, func(ok bool) []byte {
		const granted, rejected = 90, 91
		p := []byte{7: 0}
		if p[1] = rejected; ok {
			p[1] = granted
		}
		return p
	}
}

func socks5(r *byteReader, w io.Writer) (to place, answer func(ok bool) []byte) {
	const version, noLogin, none = 5, 0, 0xff
	if methods := r.take(int(r.take(1)[0])); !slices.Contains(methods, noLogin) {
		_, _ = w.Write([]byte{version, none})
		r.err = errors.Join(r.err, errSocks)
		return
	}
	_, _ = w.Write([]byte{version, noLogin}) // the next read notices a failure
	head := r.take(4)                        // version, command, reserved, type of the address
	switch head[3] {
	case 1:
		to.host = net.IP(r.take(net.IPv4len)).String()
	case 3:
		to.host = string(r.take(int(r.take(1)[0])))
	case 4:
		to.host = net.IP(r.take(net.IPv6len)).String()
	default:
		r.err = errors.Join(r.err, errSocks)
	}
	to.port = uint32(binary.BigEndian.Uint16(r.take(2)))
	if head[0] != version || head[1] != cmdConnect {
		r.err = errors.Join(r.err, errSocks)
	}
	return to, func(ok bool) []byte {
		const failed = 1
		p := []byte{0: version, 3: 1, 9: 0} // its address is unknown
		if !ok {
			p[1] = failed
		}
		return p
	}
}
