//go:build linux

package relay

import (
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/tcp"
)

// chunk is bytes on their way. No bytes are the end of the direction.
type chunk struct {
	data    []byte
	sent    int    // of data
	last    *block // whose last chunk it is; nil: others share its memory
	arrived time.Time
	due     time.Time
}

// leave writes what has not left yet, or ends the direction with an empty chunk; left
// is after all of it.
func (p *chunk) leave(to int) (left bool, err error) {
	if len(p.data) == 0 {
		return true, unix.Shutdown(to, unix.SHUT_WR)
	}
	n, err := tcp.WriteNow(uintptr(to), p.data[p.sent:])
	p.sent += n
	return p.sent == len(p.data), err
}

// fifo is what is on the way.
type fifo struct {
	chunks []chunk
	gone   int // of chunks
	held   int // bytes
}

func (f *fifo) empty() bool { return f.gone == len(f.chunks) }

// first is the chunk that leaves next, until then.
func (f *fifo) first() *chunk { return &f.chunks[f.gone] }

func (f *fifo) put(p chunk) {
	if len(f.chunks) == cap(f.chunks) && f.gone > len(f.chunks)/2 {
		f.chunks, f.gone = f.chunks[:copy(f.chunks, f.chunks[f.gone:])], 0
	}
	f.chunks = append(f.chunks, p)
	f.held += len(p.data)
}

// take removes the first one.
func (f *fifo) take() {
	f.held -= len(f.first().data)
	if f.gone++; f.empty() {
		f.chunks, f.gone = f.chunks[:0], 0
	}
}
