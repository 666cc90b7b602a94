package fleet

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
)

// TestSpoolSpills sends more than memory keeps to readers of different pace.
func TestSpoolSpills(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	data := make([]byte, spoolMemory+300<<10)
	rng := rand.NewChaCha8([32]byte{})
	rng.Read(data)
	want := sha256.Sum256(data)

	s := NewSpool(bytes.NewReader(data))
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			h := sha256.New()
			r := s.Reader()
			if _, err := io.CopyBuffer(h, struct{ io.Reader }{r}, make([]byte, 1000<<i)); err != nil {
				t.Error(err)
			}
			if got := [32]byte(h.Sum(nil)); got != want {
				t.Errorf("reader %d got other bytes", i)
			}
		})
	}
	readers.Wait()
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("the spool's file has a name: %v", left)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestSpoolFullDisk: an input that can be kept nowhere is an error for the readers, not an early
// end.
func TestSpoolFullDisk(t *testing.T) {
	t.Setenv("TMPDIR", "/nonexistent")
	s := NewSpool(bytes.NewReader(make([]byte, spoolMemory+1<<20)))
	n, err := io.Copy(io.Discard, struct{ io.Reader }{s.Reader()})
	if !errors.Is(err, os.ErrNotExist) || n >= spoolMemory+1<<20 {
		t.Errorf("%d bytes, error %v", n, err)
	}
	if s.Err() == nil {
		t.Error("Err is nil")
	}
}

// TestSpoolCloseReader wakes a reader that waits for a source that says nothing.
func TestSpoolCloseReader(t *testing.T) {
	src, w := io.Pipe()
	defer w.Close()
	s := NewSpool(src)
	r := s.Reader()
	done := make(chan error)
	go func() { _, err := r.Read(make([]byte, 1)); done <- err }()
	r.Close()
	if err := <-done; err == nil {
		t.Error("Read returned without an error")
	}
}
