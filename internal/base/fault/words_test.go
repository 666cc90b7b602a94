package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"sshpace/internal/base/fault"
)

func TestWords(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "a.jsonl", Err: syscall.ENOENT}
	for want, err := range map[string]error{
		"a.jsonl: no such file or directory":                    fault.WithHint(missing, "name another"),
		"read it: a.jsonl: no such file or directory":           fmt.Errorf("read it: %w", missing),
		"b: is a directory\na.jsonl: no such file or directory": errors.Join(&fs.PathError{Op: "stat", Path: "b", Err: syscall.EISDIR}, missing),
		"open your mind": errors.New("open your mind"),
	} {
		if got := fault.Words(err); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
