package sshtest

import (
	"io"
	"net"
	"os/exec"
	"sync"
	"testing"
)

// Piped starts a command and returns its standard input and output. The caller waits
// for its end.
func Piped(t testing.TB, cmd *exec.Cmd) (in io.WriteCloser, out io.ReadCloser) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return in, out
}

// Answering is a TCP server on loopback that does the same with every connection,
// and its address. It ends with the test, which waits for all of them.
func Answering(t testing.TB, answer func(net.Conn)) *net.TCPAddr {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	Answer(t, l, answer)
	return l.Addr().(*net.TCPAddr)
}

// Answer does the same with every connection to l. It ends with the test, which waits
// for all of them.
func Answer(t testing.TB, l net.Listener, answer func(net.Conn)) {
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer c.Close(); answer(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
}
