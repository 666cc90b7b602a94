package transport

import "sync"

const (
	// keep is the most memory that an idle connection keeps.
	keep = 16 << 10
	// bulkSize is a little more than channels send at once.
	bulkSize = 264 << 10
)

// bulks are for data in flight. A connection has one only while it sends, so that few are in use,
// and those are in the processor's cache.
var bulks = sync.Pool{New: func() any { return new([bulkSize]byte) }}

// withBulk returns out with room for n bytes more.
func withBulk(out []byte, n int) []byte {
	if cap(out)-len(out) >= n || len(out)+n > bulkSize {
		return out
	}
	return append(bulks.Get().(*[bulkSize]byte)[:0], out...)
}

// giveBulk returns the memory of withBulk; other memory is dropped.
func giveBulk(out []byte) {
	if cap(out) == bulkSize {
		bulks.Put((*[bulkSize]byte)(out[:bulkSize]))
	}
}
