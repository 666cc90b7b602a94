package dial

import (
	"io"
	"net"
	"strings"
	"testing"

	"sshpace/internal/ssh/transport"
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

func (*scripted) Write(p []byte) (int, error) { return len(p), nil }

// greet is what a conversation began with.
func greet(data []byte, piece int) greeting {
	c, _ := transport.Handshake(&scripted{rest: data, piece: piece}, &transport.Config{Version: "SSH-2.0-x"})
	return greeting{c.Greeting()}
}

// FuzzGreeting: what a peer says before the key exchange is judged alike, however the network cuts
// it; what is kept stays small.
func FuzzGreeting(f *testing.F) {
	for _, seed := range []string{
		"SSH-2.0-OpenSSH_9.2\r\n\x00\x00\x05\x0a\x14", "SSH-1.5-x\n", "Exceeded MaxStartups\r\n", "hello\r\nSSH-1.99-y\r\n",
		"HTTP/1.1 400 Bad Request\r\n\r\n", "\n\n\n", "SSH-", "SSH-2.0-slow", "", strings.Repeat("x", 3000) + "\nSSH-2.0-z\n", strings.Repeat("y", 9000),
	} {
		f.Add([]byte(seed), uint8(3))
	}
	f.Fuzz(func(t *testing.T, data []byte, piece uint8) {
		whole, cut := greet(data, len(data)+1), greet(data, int(piece)+1)
		if cut.Version != whole.Version || cut.wrong() != whole.wrong() || cut.slow() != whole.slow() || cut.turnedAway() != whole.turnedAway() {
			t.Fatalf("in pieces of %d: %+v; at once: %+v", int(piece)+1, cut, whole)
		}
		if n := len(whole.Text); n > 1000 {
			t.Fatalf("%d bytes of the greeting are kept", n)
		}
	})
}
