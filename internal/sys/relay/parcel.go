//go:build linux

package relay

import (
	"time"

	"golang.org/x/sys/unix"
)

// parcel is bytes on their way. No bytes are the end of the direction.
type parcel struct {
	data    []byte
	sent    int    // of data
	last    *block // whose last parcel it is; nil: others share its memory
	arrived time.Time
	due     time.Time
}

// leave writes what has not left yet, or ends the direction with an empty parcel; left
// is after all of it.
func (p *parcel) leave(to int) (left bool, err error) {
	if len(p.data) == 0 {
		return true, unix.Shutdown(to, unix.SHUT_WR)
	}
	n, err := send(to, p.data[p.sent:])
	p.sent += n
	return p.sent == len(p.data), err
}

// fifo is what is on the way.
type fifo struct {
	parcels []parcel
	gone    int // of parcels
	held    int // bytes
}

func (f *fifo) empty() bool { return f.gone == len(f.parcels) }

// first is the parcel that leaves next, until then.
func (f *fifo) first() *parcel { return &f.parcels[f.gone] }

func (f *fifo) put(p parcel) {
	if len(f.parcels) == cap(f.parcels) && f.gone > len(f.parcels)/2 {
		f.parcels, f.gone = f.parcels[:copy(f.parcels, f.parcels[f.gone:])], 0
	}
	f.parcels = append(f.parcels, p)
	f.held += len(p.data)
}

// take removes the first one.
func (f *fifo) take() {
	f.held -= len(f.first().data)
	if f.gone++; f.empty() {
		f.parcels, f.gone = f.parcels[:0], 0
	}
}
