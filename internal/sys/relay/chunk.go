//go:build linux

package relay

import (
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/tcp"
)

// chunk is a piece of data in flight. An empty one is the end of the direction.
type chunk struct {
	data    []byte
	sent    int    // of data
	last    *block // the block whose last chunk this is; nil: others share its memory
	arrived time.Time
	due     time.Time
}

// leave writes the rest of the chunk, or ends the direction for an empty one; left reports whether
// all is written.
func (p *chunk) leave(to int) (left bool, err error) {
	if len(p.data) == 0 {
		return true, unix.Shutdown(to, unix.SHUT_WR)
	}
	n, err := tcp.WriteNow(uintptr(to), p.data[p.sent:])
	p.sent += n
	return p.sent == len(p.data), err
}

// fifo holds the chunks in flight.
type fifo struct {
	chunks []chunk
	gone   int // of chunks
	held   int // bytes
}

func (f *fifo) empty() bool { return f.gone == len(f.chunks) }

// first returns the chunk that leaves next.
func (f *fifo) first() *chunk { return &f.chunks[f.gone] }

func (f *fifo) put(p chunk) {
	if len(f.chunks) == cap(f.chunks) && f.gone > len(f.chunks)/2 {
		f.chunks, f.gone = f.chunks[:copy(f.chunks, f.chunks[f.gone:])], 0
	}
	f.chunks = append(f.chunks, p)
	f.held += len(p.data)
}

// take removes the first chunk.
func (f *fifo) take() {
	f.held -= len(f.first().data)
	if f.gone++; f.empty() {
		f.chunks, f.gone = f.chunks[:0], 0
	}
}
