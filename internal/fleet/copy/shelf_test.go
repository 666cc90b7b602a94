package copy

import (
	"bytes"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// counted is a file that counts what is read of it.
type counted struct {
	bytesAt
	reads atomic.Int64
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	c.reads.Add(1)
	return c.bytesAt.ReadAt(p, at)
}

// Hosts that get a file at the same time have each piece of it read once, as long as the
// shelf holds it; all get all of it, and nothing stays.
func TestShelf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		size   int
		behind time.Duration // how much later each host begins
	}{{"together", 3*pieceSize + 17, 0}, {"one after the other", 2 * pieceSize, time.Millisecond}, {"empty", 0, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			text := make([]byte, tt.size)
			for i := range text {
				text[i] = byte(rand.Uint32())
			}
			file := &counted{bytesAt: text}
			it := &item{size: int64(len(text))}
			s := &shelf{}
			s.enter()
			var hosts sync.WaitGroup
			for i := range 20 {
				hosts.Go(func() {
					time.Sleep(time.Duration(i) * tt.behind)
					var got bytes.Buffer
					f := &pouring{put: &put{side: side{ctx: t.Context()}, shelf: s}, item: it, r: file}
					if n, err := f.WriteTo(&got); n != it.size || err != nil || !bytes.Equal(got.Bytes(), text) {
						t.Errorf("%d bytes, %v", n, err)
					}
				})
			}
			hosts.Wait()
			if want := int64(tt.size+pieceSize-1) / pieceSize; file.reads.Load() != want {
				t.Errorf("%d reads, want %d", file.reads.Load(), want)
			}
			if s.leave(); s.pieces != nil || s.recent != nil {
				t.Error("pieces stay")
			}
		})
	}
}

// The shelf is bounded, but for what hosts have in their hands.
func TestShelfIsBounded(t *testing.T) {
	s := &shelf{}
	file := bytesAt("short")
	it := &item{size: 5}
	s.enter()
	first := s.take(it, file, 0)
	for n := range int64(2 * shelfPieces) {
		s.give(s.take(it, file, n+1))
	}
	if len(s.recent) != shelfPieces || len(s.pieces) != shelfPieces {
		t.Errorf("%d and %d pieces", len(s.recent), len(s.pieces))
	}
	if s.take(it, file, 0) != first || string(first.buf[:first.n]) != "short" {
		t.Error("a piece in use is gone")
	}
}

// A file that has become shorter ends; nothing is made up.
func TestPouringOfLess(t *testing.T) {
	for _, size := range []int{0, 5, pieceSize} {
		p := &put{side: side{ctx: t.Context()}, shelf: &shelf{}}
		f := &pouring{put: p, item: &item{size: 3 * pieceSize}, r: bytesAt(make([]byte, size))}
		if n, err := f.WriteTo(io.Discard); n != int64(size) || err != nil {
			t.Errorf("%d of %d bytes, %v", n, size, err)
		}
	}
}

// What a limit or a slow way holds up is written in small steps.
func TestStride(t *testing.T) {
	s := stride{leastStride}
	for range 10 {
		s.took(time.Millisecond)
	}
	fast := s.size
	for range 10 {
		s.took(time.Second)
	}
	if fast != mostStride || s.size != leastStride {
		t.Errorf("%d when fast, %d when slow", fast, s.size)
	}
}

// A program is followed by its input, read or written.
func TestStdin(t *testing.T) {
	for _, input := range []io.Reader{nil, strings.NewReader("input"), struct{ io.Reader }{strings.NewReader("input")}} {
		steps := 0
		s := &stdin{head: bytes.NewReader([]byte("head")), input: input, told: func() { steps++ }}
		var out strings.Builder
		if _, err := s.WriteTo(&out); err != nil || strings.TrimSuffix(out.String(), "input") != "head" || (input != nil) != (steps > 0) {
			t.Errorf("%q, %v, %d steps", out.String(), err, steps)
		}
	}
	s := &stdin{head: bytes.NewReader([]byte("head")), input: strings.NewReader("input"), told: func() {}}
	if all, err := io.ReadAll(struct{ io.Reader }{s}); string(all) != "headinput" || err != nil {
		t.Errorf("%q, %v", all, err)
	}
}
