package terminal

import (
	"bytes"
	"os"
	"testing"
)

// TestSame: one pipe under two numbers is one place, two pipes, and a stream without a file, are
// not.
func TestSame(t *testing.T) {
	_, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_, other, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if !Same(w, w) || Same(w, other) || Same(w, &bytes.Buffer{}) || Same(&bytes.Buffer{}, w) {
		t.Error("the same, or not the same")
	}
}
