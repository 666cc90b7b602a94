package tcp

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
)

// nagle writes small packets in pairs with Nagle's algorithm on, and waits for a byte in between:
// the second of a pair waits for an acknowledgement.
func nagle(t *testing.T, pairs int) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		c.(*net.TCPConn).SetNoDelay(false)
		for range pairs {
			c.Write([]byte{1})
			c.Write([]byte{2})
			io.ReadFull(c, make([]byte, 1))
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); l.Close(); <-ended })
	return c
}

// pairs reads and answers the pairs, and returns what that took.
func pairs(t *testing.T, c net.Conn, r io.Reader, n int) time.Duration {
	t.Helper()
	began := time.Now()
	for range n {
		if _, err := io.ReadFull(r, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		c.Write([]byte{0})
	}
	return time.Since(began)
}

// Without delayed acknowledgements a conversation in pairs is several times as fast: each pair but
// a few first ones waits 40 ms with them.
func TestNagleDoesNotWait(t *testing.T) {
	const n = 40
	waittest.Until(t, "pairs in half of the time", func() bool { // a busy machine may hold up one of the two
		slow, fast := nagle(t, n), nagle(t, n)
		without := pairs(t, slow, slow, n)
		with := pairs(t, fast, Quick(fast), n)
		t.Logf("%d pairs took %v, %v without quick acknowledgements", n, with, without)
		return with <= without/2
	})
}

// What is no TCP connection is read as it is.
func TestNoTCP(t *testing.T) {
	a, b := net.Pipe()
	go func() { a.Write([]byte("hello")); a.Close() }()
	if text, err := io.ReadAll(Quick(b)); string(text) != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// Where the option is refused, as on a closed connection, reading goes on.
func TestRefused(t *testing.T) {
	c := nagle(t, 1)
	r := Quick(c)
	c.Close()
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("a closed connection was read")
	}
	if r.in != nil {
		t.Error("the option is asked for again")
	}
}

// couple is both ends of a connection on loopback.
func couple(t *testing.T) (ours *QuickConn, theirs *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	peer, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); peer.Close() })
	return Quick(c), peer.(*net.TCPConn)
}

// What is written in pieces of any length, long and short, comes back whole, however long the other
// end keeps it; then its end is told.
func TestEcho(t *testing.T) {
	ours, theirs := couple(t)
	go func() {
		time.Sleep(50 * time.Millisecond) // until we have to wait for room
		io.Copy(theirs, theirs)
		theirs.CloseWrite()
	}()
	sent := make([]byte, 8<<20)
	for i := range sent {
		sent[i] = byte(rand.Uint32())
	}
	wrote := make(chan error, 1)
	go func() {
		for rest := sent; len(rest) > 0; {
			n := min(1+rand.IntN(short), len(rest))
			if rand.IntN(100) == 0 {
				n = min(16*short, len(rest))
			}
			if k, err := ours.Write(rest[:n]); k != n || err != nil {
				wrote <- err
				return
			}
			rest = rest[n:]
		}
		wrote <- ours.Conn.(*net.TCPConn).CloseWrite()
	}()
	var got []byte
	buf := make([]byte, 2*short)
	for {
		n, err := ours.Read(buf[:1+rand.IntN(len(buf))])
		got = append(got, buf[:n]...)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-wrote; err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came back whole, %v", len(got), len(sent), err)
	}
}

// A reset is told as net tells it, to readers and to writers.
func TestReset(t *testing.T) {
	for _, use := range []struct {
		name string
		do   func(*QuickConn) error
		want syscall.Errno
	}{
		{"read", func(c *QuickConn) error { _, err := c.Read(make([]byte, 1)); return err }, syscall.ECONNRESET},
		{"write", func(c *QuickConn) (err error) {
			for err == nil { // the first ones may still leave
				_, err = c.Write([]byte{1})
			}
			return err
		}, syscall.ECONNRESET},
	} {
		ours, theirs := couple(t)
		theirs.SetLinger(0)
		theirs.Close()
		err := use.do(ours)
		if failed := (*net.OpError)(nil); !errors.As(err, &failed) || failed.Op != use.name || failed.Net != "tcp" || failed.Addr == nil {
			t.Errorf("%s: %#v", use.name, err)
		}
		if !errors.Is(err, use.want) && !errors.Is(err, syscall.EPIPE) {
			t.Errorf("%s: %v", use.name, err)
		}
	}
}

// Close ends a read and a write that wait.
func TestCloseEndsWaiting(t *testing.T) {
	ours, _ := couple(t)
	ended := make(chan error, 2)
	go func() {
		_, err := ours.Read(make([]byte, 1))
		ended <- err
	}()
	go func() {
		for {
			if _, err := ours.Write(make([]byte, short-1)); err != nil {
				ended <- err
				return
			}
		}
	}()
	time.Sleep(100 * time.Millisecond)
	ours.Close()
	for range 2 {
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("%v", err)
		}
	}
}
