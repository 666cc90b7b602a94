package session

import (
	"io"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/channel"
)

// sender is what is sent on a session's channel, be it to be read or not.
type sender interface {
	io.WriteCloser
	CloseWrite() error
	SendRequest(name string, wantReply bool, payload []byte) (bool, error)
}

// request asks for an environment, NAME=value, without waiting, and then for what a session is
// to be ("exec", "subsystem"): by a line, or a name (RFC 4254 sections 6.4 and 6.5).
func request(s sender, kind, line string, env []string) (granted bool, err error) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if _, err := s.SendRequest("env", false, channel.Text(name, value)); err != nil {
			return false, err
		}
	}
	return s.SendRequest(kind, true, channel.Text(line))
}

// feed sends all that r has, and its end. stop closes r and waits for what is being sent,
// which the end of the connection ends.
func feed(to sender, r io.ReadCloser) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := takeBuffer()
		defer giveBuffer(buf)
		io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{r}, buf[:])
		to.CloseWrite()
	}()
	return func() { r.Close(); <-done }
}

// buffer is for data on their way.
type buffer [64 << 10]byte

var buffers = sync.Pool{New: func() any { return new(buffer) }}

// takeBuffer takes a buffer, which giveBuffer gives back.
func takeBuffer() *buffer { return buffers.Get().(*buffer) }

// giveBuffer gives a buffer back.
func giveBuffer(b *buffer) { buffers.Put(b) }

// ending is what a server tells of a command's end.
type ending struct {
	Exit   int // -1: none told
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

// told tells whether the server has said how the command ended.
func (e *ending) told() bool { return e.Exit >= 0 || e.Signal != "" }

// signalName keeps what a signal can be called; the peer chose the text.
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
