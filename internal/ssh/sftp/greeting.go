package sftp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sshpace/internal/ssh/channel"
)

// ErrNoServer says that the host has no SFTP server for this user. By itself it means that the host
// sent no message.
var ErrNoServer = errors.New("the host does not speak SFTP for this account")

// ErrNoise says that something else writes to the stream before the server does.
var ErrNoise = errors.New("the account's start-up file prints to non-interactive sessions")

// greeting reads the server's version, and returns its extensions.
func (c *Client) greeting() (extensions *channel.Fields, err error) {
	head, err := c.reads.Peek(5)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	if len(head) < 5 || head[4] != typeVersion || binary.BigEndian.Uint32(head) > maxReply {
		return nil, c.foreign()
	}
	n, err := c.length()
	if err != nil {
		return nil, err
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c.reads, body); err != nil {
		return nil, ErrNoServer
	}
	if len(body) < 5 || binary.BigEndian.Uint32(body[1:]) < version {
		return nil, broken("it does not begin with its version")
	}
	return &channel.Fields{Rest: body[5:]}, nil
}

const (
	// maxForeign is how much text from others than the server is read.
	maxForeign = 16 << 10
	// foreignTime is how long.
	foreignTime = 2 * time.Second
)

// foreign explains a stream that does not begin like a server's: sshd lets the login shell start an
// external server (sshd_config(5), Subsystem), and the shell may print something before, or refuse.
// In the first case the server's version follows.
func (c *Client) foreign() error {
	late := time.AfterFunc(foreignTime, func() { c.conn.Close() })
	defer late.Stop()
	greeting := []byte{typeVersion, 0, 0, 0, version}
	var said []byte
	for len(said) < maxForeign && !bytes.HasSuffix(said, greeting) {
		b, err := c.reads.ReadByte()
		if err != nil {
			break
		}
		said = append(said, b)
	}
	if text, found := bytes.CutSuffix(said, greeting); found && len(text) >= 4 {
		return fmt.Errorf("%w: %q; let it print only to terminals, as with [ -t 1 ], or use Subsystem sftp internal-sftp", ErrNoise, FirstLine(text[:len(text)-4]))
	}
	if line := FirstLine(said); line != "" {
		return fmt.Errorf("%w; it says: %q", ErrNoServer, line)
	}
	return ErrNoServer
}

// FirstLine returns the first non-empty line of a host's message, as far as it is worth showing.
func FirstLine(text []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(line[:min(len(line), maxText)])
}
