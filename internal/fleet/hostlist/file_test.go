package hostlist

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestReadInputGivesUp: Ctrl-C must work while someone is typing a list.
func TestReadInputGivesUp(t *testing.T) {
	in, held := io.Pipe()
	defer held.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	time.AfterFunc(10*time.Millisecond, func() { cancel(stop) })
	if _, err := readInput(ctx, in); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if text, err := readInput(t.Context(), strings.NewReader("db1\n")); string(text) != "db1\n" || err != nil {
		t.Errorf("read %q, %v", text, err)
	}
}
