package dial

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strconv"
	"sync/atomic"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/tcp"
)

// conn is a connection that watches the beginning of the conversation: what the peer
// said first decides whether a close means "slow down", "no SSH here" or a broken server.
type conn struct {
	*tcp.QuickConn
	reached atomic.Uint32 // fleet.Phase

	alive func()

	after atomic.Bool // something came behind the version line

	// Only the goroutine that waits for the version line touches these, and
	// nobody after it.
	ahead    []byte // read from the peer, not yet handed on
	partial  []byte // the line that has not ended yet
	greeting []byte // what came before the version line, cut at maxGreeting
	line     bool   // the version line has ended
	wrong    bool   // a line that is neither a version nor allowed before one
}

const (
	// maxGreeting is what is kept of the text before the version line for the
	// error message.
	maxGreeting = 128
	// readAhead is how much is read at once before the key exchange: a version
	// line and the beginning of a KEXINIT.
	readAhead = 512
)

var errWrongBanner = errors.New("not an SSH 2 version line")

// newConn calls alive as soon as the version line has come.
func newConn(c net.Conn, alive func()) *conn {
	w := &conn{QuickConn: tcp.Quick(c), alive: alive}
	w.reach(fleet.PhaseKex)
	return w
}

func (c *conn) reach(p fleet.Phase) { c.reached.Store(uint32(p)) }

func (c *conn) phase() fleet.Phase { return fleet.Phase(c.reached.Load()) }

// Read gives what was read ahead, then reads the connection.
func (c *conn) Read(p []byte) (int, error) {
	if len(c.ahead) == 0 && !c.line {
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	if len(c.ahead) > 0 {
		n := copy(p, c.ahead)
		c.ahead = c.ahead[n:]
		if len(c.ahead) == 0 {
			c.ahead = nil
		}
		return n, nil
	}
	n, err := c.QuickConn.Read(p)
	if n > 0 && !c.after.Load() {
		c.after.Store(true)
	}
	return n, err
}

func (c *conn) fill() error {
	buf := make([]byte, readAhead)
	n, err := c.QuickConn.Read(buf)
	if n == 0 {
		return err
	}
	c.ahead = buf[:n]
	c.look(c.ahead)
	if c.wrong {
		return errWrongBanner
	}
	return nil
}

// look finds the version line. RFC 4253 section 4.2 lets a server send other
// lines first, but none that begin with "SSH-".
func (c *conn) look(p []byte) {
	for len(p) > 0 && !c.line && !c.wrong {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		c.partial = append(c.partial, line[:min(len(line), maxGreeting)]...)
		if !whole {
			c.partial = c.partial[:min(len(c.partial), 2*maxGreeting)]
			return
		}
		p = rest
		c.judge()
		c.partial = nil
	}
	if len(p) > 0 {
		c.after.Store(true)
	}
}

// judge looks at a whole line.
func (c *conn) judge() {
	switch {
	case bytes.HasPrefix(c.partial, []byte("SSH-2.0-")), bytes.HasPrefix(c.partial, []byte("SSH-1.99-")):
		c.line = true
		c.alive()
		return
	case bytes.HasPrefix(c.partial, []byte("SSH-")), bytes.HasPrefix(c.partial, []byte("HTTP/")):
		c.wrong = true
	}
	c.greeting = append(c.greeting, c.partial...)
	c.greeting = append(c.greeting[:min(len(c.greeting), maxGreeting)], '\n')
}

// turnedAway tells whether an end of the connection now means "slow down":
// nothing of the key exchange was seen, and nothing else than sshd's own words.
func (c *conn) turnedAway() bool {
	if c.after.Load() || c.wrong {
		return false
	}
	said := c.said()
	return c.line || len(said) == 0 || openssh.TurnedAway(string(said))
}

// said is what came before the version line.
func (c *conn) said() []byte {
	return append(c.greeting[:len(c.greeting):len(c.greeting)], c.partial...)
}

func (c *conn) sentBanner() bool { return c.line }

// wrongBanner tells whether the peer spoke, but no SSH 2.
func (c *conn) wrongBanner() bool {
	return c.wrong || (!c.line && len(c.said()) > 0 && !c.slowVersion())
}

// slowVersion tells whether the peer has sent the beginning of a version line
// and nothing else.
func (c *conn) slowVersion() bool {
	if c.line || len(c.greeting) > 0 || len(c.partial) == 0 {
		return false
	}
	return slices.ContainsFunc([]string{"SSH-2.0-", "SSH-1.99-"}, func(start string) bool {
		n := min(len(start), len(c.partial))
		return string(c.partial[:n]) == start[:n]
	})
}

func (c *conn) quoteBanner() string {
	said := c.said()
	return strconv.QuoteToASCII(string(bytes.TrimSpace(said[:min(len(said), maxGreeting)])))
}

// peer is the address that was dialled, for messages.
func (c *conn) peer(t *Target) string {
	if tcp, ok := c.RemoteAddr().(*net.TCPAddr); ok && !tcp.IP.IsUnspecified() {
		return tcp.IP.String()
	}
	return t.HostName
}

// closeOn closes the connection when ctx ends; stop ends that and tells whether
// it came in time. Deadlines would be simpler, but connections through a jump
// host have none.
func (c *conn) closeOn(ctx context.Context) (stop func() bool) {
	return context.AfterFunc(ctx, func() { c.Close() })
}
