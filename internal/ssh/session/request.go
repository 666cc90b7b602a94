package session

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/line"
)

// grant sends an environment without waiting, and then the request of a session (RFC 4254 sections
// 6.4 and 6.5).
func grant(s interface {
	SendRequest(name string, wantReply bool, payload []byte) (bool, error)
}, a line.Ask) error {
	for _, kv := range a.Env {
		name, value, _ := strings.Cut(kv, "=")
		if _, err := s.SendRequest("env", false, channel.Text(name, value)); err != nil {
			return err
		}
	}
	granted, err := s.SendRequest(string(a.Kind), true, channel.Text(a.Text))
	switch {
	case err != nil || granted:
		return err
	case a.Kind == line.Subsystem:
		return ErrNoSubsystem
	}
	return ErrRefused
}

// stream is a channel that is read; see line.Channel.
type stream struct {
	ssh.Channel
	requests <-chan *ssh.Request
}

// HungUp reports whether the server has ended the channel.
func (s *stream) HungUp() bool {
	c, ok := s.Channel.(interface{ HungUp() bool })
	return ok && c.HungUp()
}

// Exit returns the end of the command that the server has sent.
func (s *stream) Exit() int {
	end := ending{Exit: -1}
	for r := range s.requests {
		end.take(r.Type, r.Payload)
	}
	return end.Exit
}

// Open opens another channel; see line.Line.
func (c *Connection) Open(ctx context.Context, a line.Ask) (line.Channel, error) {
	if a.Kind == line.Forward {
		return c.forward(ctx, a.Text)
	}
	ch, requests, err := c.Stream(ctx, "session", nil)
	if err != nil {
		return nil, err
	}
	go io.Copy(io.Discard, ch.Stderr())
	defer context.AfterFunc(ctx, func() { ch.Close() })()
	if err := grant(ch, a); err != nil {
		ch.Close()
		return nil, err
	}
	return &stream{ch, requests}, nil
}

// forward opens a connection from the server to somewhere (RFC 4254 section 7.2).
func (c *Connection) forward(ctx context.Context, address string) (line.Channel, error) {
	name, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	to := channel.AppendNumber(channel.Text(name), uint32(port))
	from := channel.AppendNumber(channel.Text(net.IPv4zero.String()), 0)
	ch, requests, err := c.Stream(ctx, string(line.Forward), append(to, from...))
	if err != nil {
		return nil, err
	}
	return &stream{ch, requests}, nil
}

// feed sends the content of r, and its end. stop closes r and waits for the running transmission,
// which the end of the connection ends.
func feed(to interface {
	io.Writer
	CloseWrite() error
}, r io.ReadCloser) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := Buffers.Get().(*Buffer)
		defer Buffers.Put(buf)
		io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{r}, buf[:])
		to.CloseWrite()
	}()
	return func() { r.Close(); <-done }
}

// Buffer is for data in flight, as much as a pipe holds.
type Buffer [64 << 10]byte

// Buffers has a *Buffer for whoever feeds a session.
var Buffers = sync.Pool{New: func() any { return new(Buffer) }}

// ending is the end of a command that a server reports.
type ending struct {
	Exit   int // -1: not reported
	Signal string
}

// take takes exit-status and exit-signal (RFC 4254 section 6.10).
func (e *ending) take(name string, payload []byte) {
	switch name {
	case "exit-status":
		var m struct{ Status uint32 }
		if ssh.Unmarshal(payload, &m) == nil {
			e.Exit = int(m.Status)
		}
	case "exit-signal":
		var m struct {
			Signal string
			Rest   []byte `ssh:"rest"`
		}
		if ssh.Unmarshal(payload, &m) == nil {
			e.Signal = signalName(m.Signal)
		}
	}
}

// reported reports whether the server has reported the end of the command.
func (e *ending) reported() bool { return e.Exit >= 0 || e.Signal != "" }

// signalName keeps plausible names of signals; the peer chose the text.
func signalName(s string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToUpper(s[:min(len(s), 20)]))
	if name == "" {
		return "?"
	}
	return name
}
