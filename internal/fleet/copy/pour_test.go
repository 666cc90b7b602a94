package copy

import (
	"io"
	"testing"
)

// A file that has become shorter ends; nothing is made up.
func TestPouringOfLess(t *testing.T) {
	for _, size := range []int64{0, 5, 100} {
		f := &pouring{put: &put{side: side{ctx: t.Context()}}, item: &item{size: 300}, r: bytesAt(make([]byte, size))}
		if n, err := io.Copy(io.Discard, f); n != size || err != nil {
			t.Errorf("%d of %d bytes, %v", n, size, err)
		}
	}
}
