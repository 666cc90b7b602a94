package mux

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/session"
)

// refusing is a connection to a server that refuses everything.
type refusing struct {
	packets chan []byte
	end     chan struct{}
	once    sync.Once
}

func (r *refusing) Receive([]byte) ([]byte, error) {
	for {
		select {
		case p := <-r.packets:
			f := channel.FieldsOf(p)
			switch p[0] {
			case 80:
				return []byte{82}, nil
			case 90:
				f.Text()
				return append(channel.AppendNumber(channel.AppendNumber([]byte{92}, f.Number()), 1), make([]byte, 8)...), nil
			}
		case <-r.end:
			return nil, io.EOF
		}
	}
}

func (r *refusing) Send(messages ...[]byte) error {
	for _, m := range messages {
		select {
		case r.packets <- bytes.Clone(m):
		case <-r.end:
			return io.EOF
		}
	}
	return nil
}

func (r *refusing) SendData(head, data []byte, _ int) error { return r.Send(head) }

func (r *refusing) Close() error { r.once.Do(func() { close(r.end) }); return nil }

// hostile serves hostile clients, until the test ends.
func hostile(t testing.TB) (path string, s *Server) {
	t.Helper()
	dir, err := os.MkdirTemp("", "mux")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l, err := Listen(filepath.Join(dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	here, there := net.Pipe()
	r := &refusing{packets: make(chan []byte, 1000), end: make(chan struct{})}
	conn := &session.Connection{Named: &channel.Named{Conn: channel.New(r, nil, 0), Net: here}, Result: fleet.Outcome{}}
	s = &Server{Conn: conn}
	over := make(chan error, 1)
	go func() { over <- s.Serve(context.Background(), l) }()
	t.Cleanup(func() {
		select {
		case err := <-over:
			if !errors.Is(err, ErrExit) && !errors.Is(err, ErrStopped) {
				t.Errorf("the master has ended: %v", err)
			}
		default:
			conn.Close()
			<-over
		}
		here.Close()
		there.Close()
	})
	return l.Path, s
}

// attack sends bytes, and files beside the first of them, and reads until the master has ended the
// connection or for a moment.
func attack(t testing.TB, path string, data []byte, files ...int) {
	t.Helper()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if len(data) > 0 {
		_, _, _ = c.WriteMsgUnix(data[:1], unix.UnixRights(files...), nil)
		_, _ = c.Write(data[1:])
	}
	_ = c.CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.Copy(io.Discard, c); err != nil && os.IsTimeout(err) {
		t.Errorf("%x keeps the connection open", data[:min(len(data), 100)])
	}
}

func message(kind uint32, rest ...[]byte) []byte {
	body := append(binary.BigEndian.AppendUint32(nil, kind), bytes.Join(rest, nil)...)
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)
}

func number(n uint32) []byte { return binary.BigEndian.AppendUint32(nil, n) }

// greeting is how a client begins.
func greeting() []byte { return message(msgHello, number(version)) }

// attacks are messages of hostile clients, after the greeting.
func attacks() [][]byte {
	all := [][]byte{
		{0xff, 0xff, 0xff, 0xff}, {0, 0, 0, 0}, {0, 0, 0, 9, 1}, message(msgHello), greeting(), message(askSession), message(0x7fffffff, number(1)),
		message(askSession, number(1), make([]byte, 32)), message(askStdio, number(1), make([]byte, 12)),
		append(message(askSession, number(1), make([]byte, 32)), 0, 0, 0),
		message(askForward, number(1), number(9), make([]byte, 16)), message(askForward, number(1), number(remote), channel.Text("h"), number(70000), channel.Text("h"), number(1)),
		message(askCancel, number(1), number(local), make([]byte, 16)), message(askInfo, number(1), channel.Text("nothing")), message(askInfo, number(1), number(9)),
	}
	for _, packet := range [][]byte{
		{}, {0}, {0, 1}, {0, 80}, {0, 90}, {0, 90, 0, 0, 0, 0}, {0, 91, 0, 0, 0, 0}, {0, 94, 0, 0, 0, 7, 0, 0, 0, 1, 'x'}, {0, 97, 0, 0, 0, 0}, {0, 255},
	} {
		all = append(all, append(message(askProxy, number(1)), append(number(uint32(len(packet))), packet...)...))
	}
	return all
}

// TestHostileClients: what a client must not send ends it, with and without files, and no other
// client; no file is left open.
func TestHostileClients(t *testing.T) {
	path, s := hostile(t)
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	descriptors := func() int {
		names, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	attack(t, path, nil)
	before := descriptors()
	for _, a := range attacks() {
		fd := int(null.Fd())
		attack(t, path, a)
		attack(t, path, append(greeting(), a...))
		attack(t, path, append(greeting(), a[:len(a)/2]...), fd)
		attack(t, path, append(greeting(), a...), fd, fd, fd, fd, fd)
	}
	idle := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.clients == 0 && len(s.open) == 0
	}
	if !waittest.Comes(idle) || !waittest.Comes(func() bool { return descriptors() <= before }) {
		t.Errorf("%d descriptors are open, %d before", descriptors(), before)
	}
	var many []net.Conn
	for range maxClients + 50 {
		c, err := net.Dial("unix", path)
		if err != nil {
			break
		}
		many = append(many, c)
	}
	for _, c := range many {
		c.Close()
	}
	if !waittest.Comes(idle) {
		t.Error("clients are left")
	}
	l, err := connect(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	l.conn.Close()
}

// TestPermitRemoteOpen: what connects to a remote forward and says itself where to gets to the
// places of PermitRemoteOpen alone.
func TestPermitRemoteOpen(t *testing.T) {
	for _, c := range []struct {
		permitted string
		to        place
		want      bool
	}{
		{"", place{"h", 1}, true},
		{"any", place{"h", 1}, true},
		{"none", place{"h", 1}, false},
		{"h:1", place{"h", 1}, true},
		{"h:1", place{"h", 2}, false},
		{"h:1", place{"hh", 1}, false},
		{"x:1 [::1]:*", place{"::1", 9}, true},
		{"*:22", place{"h", 22}, true},
		{"*:ssh", place{"h", 22}, true},
		{"*:ssh", place{"h", 23}, false},
		{"h:nowhere", place{"h", 0}, false},
	} {
		s := Server{PermitRemoteOpen: strings.Fields(c.permitted)}
		if c.permitted == "" {
			s.PermitRemoteOpen = nil
		}
		if got := s.opens(c.to); got != c.want {
			t.Errorf("%q, to %v: %v", c.permitted, c.to, got)
		}
	}
}

// FuzzServer: nothing that a client sends stops a master.
func FuzzServer(f *testing.F) {
	for _, a := range attacks() {
		f.Add(append(greeting(), a...), uint8(3))
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { null.Close() })
	f.Fuzz(func(t *testing.T, data []byte, files uint8) {
		path, _ := hostile(t)
		fd := int(null.Fd())
		attack(t, path, data, []int{fd, fd, fd, fd, fd}[:files%6]...)
	})
}
