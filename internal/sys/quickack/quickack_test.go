package quickack

import (
	"io"
	"net"
	"testing"
	"time"
)

// nagle writes small packets in pairs with Nagle's algorithm on, and waits for a
// byte in between: the second of a pair waits for an acknowledgement.
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

// Without delayed acknowledgements a conversation in pairs is several times as
// fast: each pair but a few first ones waits 40 ms with them.
func TestNagleDoesNotWait(t *testing.T) {
	const n = 40
	slow, fast := nagle(t, n), nagle(t, n)
	without := pairs(t, slow, slow, n)
	with := pairs(t, fast, New(fast), n)
	if with > without/2 {
		t.Errorf("%d pairs took %v, %v without quick acknowledgements", n, with, without)
	}
}

// What is no TCP connection is read as it is.
func TestNoTCP(t *testing.T) {
	a, b := net.Pipe()
	go func() { a.Write([]byte("hello")); a.Close() }()
	if text, err := io.ReadAll(New(b)); string(text) != "hello" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// Where the option is refused, as on a closed connection, reading goes on.
func TestRefused(t *testing.T) {
	c := nagle(t, 1)
	r := New(c)
	c.Close()
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("a closed connection was read")
	}
	if r.raw != nil {
		t.Error("the option is asked for again")
	}
}
