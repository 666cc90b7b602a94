package copy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestKept: small files are kept in memory up to a bound, and read from disk beyond it.
func TestKept(t *testing.T) {
	dir := t.TempDir()
	const files = mostKept/smallFile + 50
	first := filepath.Join(dir, "0")
	if err := errors.Join(os.WriteFile(first, []byte("x"), 0o600), os.Truncate(first, smallFile)); err != nil {
		t.Fatal(err)
	}
	for i := range files - 1 { // names of one file: new ones take some file systems a millisecond each
		if err := os.Link(first, filepath.Join(dir, fmt.Sprint(i+1))); err != nil {
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
