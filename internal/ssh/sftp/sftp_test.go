package sftp

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// canned is a server whose words are fixed.
type canned struct {
	io.Reader
}

func (c canned) Write(p []byte) (int, error) { return len(p), nil }
func (c canned) Close() error                { return nil }

// FuzzReplies: whatever a server says, a client neither panics nor waits for ever, and returns no
// more than it was asked for.
func FuzzReplies(f *testing.F) {
	version := []byte{0, 0, 0, 5, 2, 0, 0, 0, 3}
	f.Add([]byte{})
	f.Add(version)
	f.Add(append(bytes.Clone(version), 0, 0, 0, 9, 103, 0, 0, 0, 0, 0, 0, 0, 4, 1, 2, 3, 4))
	f.Add(append(bytes.Clone(version), 0, 0, 0, 13, 102, 0, 0, 0, 0, 0, 0, 0, 4, 'h', 'h', 'h', 'h', 0, 0, 0, 17, 104, 0, 0, 0, 1, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Add(append(bytes.Clone(version), 255, 255, 255, 255))
	f.Add(append(bytes.Clone(version), 0, 0, 0, 25, 105, 0, 0, 0, 0, 128, 0, 0, 4, 0, 0, 65, 237, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0))
	f.Fuzz(func(t *testing.T, said []byte) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c, err := NewClient(canned{Reader: bytes.NewReader(said)}, LeastInFlight)
			if err != nil {
				return
			}
			c.Lstat("x")
			names := 0
			c.ReadDir("x", func(Entry) error { names++; return nil })
			if names > len(said) {
				t.Errorf("%d names of %d bytes", names, len(said))
			}
			c.Readlink("x")
			file, err := c.Open("x", Read, 0)
			if err == nil {
				if n, _ := file.ReadAt(make([]byte, 4), 0).Wait(); n > 4 {
					t.Errorf("%d bytes", n)
				}
			}
			c.Close()
		}()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatal("the client waits for ever")
		}
	})
}

// hungUp is a connection whose other end has said something and hung up.
type hungUp struct {
	io.Reader
	unsent error // of a write
}

func (h hungUp) Write([]byte) (int, error) { return 0, h.unsent }
func (hungUp) Close() error                { return nil }

// TestRefusedBeforeTheFirstWord: a client that writes too late reports what the account has written
// before it hung up, or that there is no server. However it hung up, that is no reason by itself.
func TestRefusedBeforeTheFirstWord(t *testing.T) {
	for _, said := range []string{"", "This account is not available.\n"} {
		for _, unsent := range []error{nil, io.EOF, os.ErrClosed, syscall.EPIPE, syscall.ECONNRESET} {
			_, err := NewClient(hungUp{strings.NewReader(said), unsent}, LeastInFlight)
			if !errors.Is(err, ErrNoServer) || !strings.Contains(err.Error(), strings.TrimSpace(said)) {
				t.Errorf("%q, %v: %v", said, unsent, err)
			}
		}
	}
	version := "\x00\x00\x00\x05\x02\x00\x00\x00\x03"
	if _, err := NewClient(hungUp{strings.NewReader(version), syscall.EPIPE}, LeastInFlight); err != syscall.EPIPE {
		t.Errorf("a server that takes no request: %v", err)
	}
}
