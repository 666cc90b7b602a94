package dial

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
)

// scripted is a connection that gives its bytes in pieces of a size.
type scripted struct {
	net.Conn
	rest  []byte
	piece int
}

func (s *scripted) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.rest[:min(len(s.rest), s.piece)])
	s.rest = s.rest[n:]
	return n, nil
}

func (*scripted) Close() error { return nil }

// greet reads a whole conversation through a conn.
func greet(data []byte, piece int) (*conn, []byte, error) {
	c := newConn(&scripted{rest: data, piece: piece}, func() {})
	var got bytes.Buffer
	_, err := io.CopyBuffer(&got, struct{ io.Reader }{c}, make([]byte, 7))
	return c, got.Bytes(), err
}

// FuzzGreeting: what a peer says before the key exchange is passed on unchanged
// and judged alike, however the network cuts it; what is kept stays small.
func FuzzGreeting(f *testing.F) {
	for _, seed := range []string{
		"SSH-2.0-OpenSSH_9.2\r\n\x00\x00\x05\x0a\x14", "SSH-1.5-x\n", "Exceeded MaxStartups\r\n", "hello\r\nSSH-1.99-y\r\n",
		"HTTP/1.1 400 Bad Request\r\n\r\n", "\n\n\n", "SSH-", "", strings.Repeat("x", 3000) + "\nSSH-2.0-z\n",
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		whole, got, err := greet(data, len(data)+1)
		if (err != nil) != whole.wrong {
			t.Fatalf("error %v, wrong %v", err, whole.wrong)
		}
		if err == nil && !bytes.Equal(got, data) {
			t.Fatalf("%q became %q", data, got)
		}
		cut, gotCut, errCut := greet(data, int(piece)+1)
		if cut.line != whole.line || cut.wrong != whole.wrong || cut.turnedAway() != whole.turnedAway() || (errCut == nil) != (err == nil) {
			t.Fatalf("in pieces of %d: line %v, wrong %v, turned away %v; at once: %v, %v, %v",
				int(piece)+1, cut.line, cut.wrong, cut.turnedAway(), whole.line, whole.wrong, whole.turnedAway())
		}
		if errCut == nil && !bytes.Equal(gotCut, data) {
			t.Fatalf("in pieces %q became %q", data, gotCut)
		}
		if n := len(whole.said()); n > 4*maxGreeting {
			t.Fatalf("%d bytes of the greeting are kept", n)
		}
	})
}
