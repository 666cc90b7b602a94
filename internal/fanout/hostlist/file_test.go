package hostlist

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"sshpace/internal/fleet/hostset"
)

// TestReadInputGivesUp: Ctrl-C must work while someone is typing a list.
func TestReadInputGivesUp(t *testing.T) {
	in, held := io.Pipe()
	defer held.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stopped")
	time.AfterFunc(10*time.Millisecond, func() { cancel(stop) })
	if _, err := readInput(ctx, in, hostset.ReadSets); !errors.Is(err, stop) {
		t.Errorf("error %v, want %v", err, stop)
	}
	if list, err := readInput(t.Context(), strings.NewReader("db1\n"), hostset.ReadSets); list == nil || err != nil {
		t.Errorf("read %v, %v", list, err)
	}
}
