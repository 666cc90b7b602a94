package proc

import (
	"bytes"
	"context"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestShell(t *testing.T) {
	var stderr bytes.Buffer
	for line, want := range map[string]struct {
		out string
		ok  bool
	}{
		`echo "$WORD"; echo said >&2`: {"spoken\n", true},
		"echo a; exit 3":              {"a\n", false},
		"yes":                         {"", false},
	} {
		out, err := Shell(t.Context(), line, []string{"WORD=spoken"}, &stderr, 4096)
		if (err == nil) != want.ok || line != "yes" && out != want.out {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
	if stderr.String() != "said\n" {
		t.Errorf("standard error has %q", &stderr)
	}
	// Who holds the pipe is not waited for.
	out, err := Shell(t.Context(), "sleep 600 & echo $!", nil, io.Discard, 4096)
	if pid, _ := strconv.Atoi(strings.TrimSpace(out)); err != nil || pid == 0 || syscall.Kill(pid, syscall.SIGKILL) != nil {
		t.Errorf("what a command leaves running: %q, %v", out, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Shell(ctx, "exec sleep 600", nil, io.Discard, 4096); err != context.DeadlineExceeded {
		t.Errorf("a command that is given up: %v", err)
	}
}
