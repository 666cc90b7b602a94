package copy

import (
	"fmt"
	"os"
	"testing"
)

// TestKept: small files are kept in memory up to a bound, and read from disk beyond it.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	const files = mostKept/smallFile + 50
	for i := range files {
		name := fmt.Sprintf("%s/%d", dir, i)
		if err := os.WriteFile(name, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, smallFile); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Scan(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, it := range s.items {
		if it.keep {
			kept++
			continue
		}
		if it.kind != 0 {
			continue
		}
		r, done, err := it.open()
		var b [1]byte
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.ReadAt(b[:], 0); err != nil || b[0] != 'x' || it.data != nil {
			t.Errorf("%s: %v, %q, %d bytes in memory", it.rel, err, b, len(it.data))
		}
		done()
	}
	if kept != mostKept/smallFile {
		t.Errorf("%d of %d files are kept, want %d", kept, files, mostKept/smallFile)
	}
}
