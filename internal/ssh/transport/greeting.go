package transport

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// Greeting is the text of a server before the key exchange.
type Greeting struct {
	Version string // its version line
	Text    []byte // the beginning of the text before the version line
	More    bool   // more text came after it
}

// maxText is how much of a greeting is kept.
const maxText = 256

// read reads a peer's version line and the text that a server may send before it (RFC 4253 section
// 4.2).
func (g *Greeting) read(in *input) error {
	for range maxLines {
		line, err := in.line()
		text := strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r")
		if err == nil && (strings.HasPrefix(text, "SSH-2.0-") || strings.HasPrefix(text, "SSH-1.99-")) {
			g.Version, g.More = text, in.buffered() > 0
			return nil
		}
		g.Text = append(g.Text, line[:min(len(line), maxText-len(g.Text))]...)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(text, "SSH-"), strings.HasPrefix(text, "HTTP/"):
			return errors.New("ssh: the server speaks another protocol")
		}
	}
	return errors.New("ssh: the server sends text instead of a version line")
}

// Greeting returns the server's first text.
func (c *Conn) Greeting() *Greeting { return &c.greeting }

// ReadGreeting reads a peer's text before anything is negotiated.
func ReadGreeting(r io.Reader) (version string, lists *KexInit, err error) {
	in := newInput(r)
	var g Greeting
	if err := g.read(in); err != nil {
		return "", nil, fmt.Errorf("read the version line: %w", err)
	}
	version = g.Version
	p, err := plain{}.open(in, 0)
	if err == nil && p[0] != msgKexInit {
		err = unexpected(p[0], msgKexInit)
	}
	if err != nil {
		return version, nil, fmt.Errorf("read KEXINIT: %w", err)
	}
	theirs, err := parseInit(p)
	if err != nil {
		return version, nil, fmt.Errorf("read KEXINIT: %w", err)
	}
	return version, &theirs.KexInit, nil
}
