package proc

import (
	"strings"
	"testing"
)

func TestTailKeepsTheLastWords(t *testing.T) {
	w := Tail{Max: 1000}
	for _, text := range []string{strings.Repeat("a", 3*1000), "b", strings.Repeat("c", 1000-1)} {
		if n, err := w.Write([]byte(text)); n != len(text) || err != nil {
			t.Errorf("Write: %d, %v", n, err)
		}
	}
	if got, want := w.String(), "b"+strings.Repeat("c", 1000-1); got != want {
		t.Errorf("%d bytes that begin with %q", len(got), got[:min(9, len(got))])
	}
}
