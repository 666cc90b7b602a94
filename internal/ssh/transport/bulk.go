package transport

import "sync"

const (
	// keep is how much memory a connection may hold on to that sends nothing.
	keep = 16 << 10
	// bulkSize is a little more than what channels send at once.
	bulkSize = 264 << 10
)

// bulks are for data on its way. A connection has one only while it sends, so that few
// are in use, and those are in the processor's cache.
var bulks = sync.Pool{New: func() any { return new([bulkSize]byte) }}

// withBulk is out with room for n bytes more.
func withBulk(out []byte, n int) []byte {
	if cap(out)-len(out) >= n || len(out)+n > bulkSize {
		return out
	}
	return append(bulks.Get().(*[bulkSize]byte)[:0], out...)
}

// giveBulk gives back what withBulk took; other memory is dropped.
func giveBulk(out []byte) {
	if cap(out) == bulkSize {
		bulks.Put((*[bulkSize]byte)(out[:bulkSize]))
	}
}
