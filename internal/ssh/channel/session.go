package channel

import (
	"io"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Sender is what is sent on a session's channel, be it ours or x/crypto's.
type Sender interface {
	io.WriteCloser
	CloseWrite() error
	SendRequest(name string, wantReply bool, payload []byte) (bool, error)
}

// Start asks for an environment, NAME=value, without waiting, and then for what a session is
// to be ("exec", "subsystem"): by a line, or a name (RFC 4254 sections 6.4 and 6.5).
func Start(s Sender, kind, line string, env []string) (granted bool, err error) {
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if _, err := s.SendRequest("env", false, Text(name, value)); err != nil {
			return false, err
		}
	}
	return s.SendRequest(kind, true, Text(line))
}

// Feed sends all that r has, and its end. stop closes r and waits for what is being sent,
// which the end of the connection ends.
func Feed(to Sender, r io.ReadCloser) (stop func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		buf := TakeBuffer()
		defer GiveBuffer(buf)
		io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{r}, buf[:])
		to.CloseWrite()
	}()
	return func() { r.Close(); <-done }
}

// Buffer is for data on their way.
type Buffer [64 << 10]byte

var buffers = sync.Pool{New: func() any { return new(Buffer) }}

// TakeBuffer takes a buffer, which GiveBuffer gives back.
func TakeBuffer() *Buffer { return buffers.Get().(*Buffer) }

// GiveBuffer gives a buffer back.
func GiveBuffer(b *Buffer) { buffers.Put(b) }

// End is what a server tells of a command's end.
type End struct {
	Exit   int // -1: none told
	Signal string
}

// Take takes exit-status and exit-signal (RFC 4254 section 6.10).
func (e *End) Take(name string, payload []byte) {
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

// Told tells whether the server has said how the command ended.
func (e *End) Told() bool { return e.Exit >= 0 || e.Signal != "" }

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
