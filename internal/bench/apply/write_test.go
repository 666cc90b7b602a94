package apply

import (
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"sshpace/internal/base/fault"
)

// What keeps a configuration from being written is said with what to do about it.
func TestWriteAdviceErrorSaysWhatToDo(t *testing.T) {
	for errno, want := range map[syscall.Errno]string{
		syscall.EACCES: "you may not write there", syscall.EPERM: "chattr +i", syscall.EROFS: "read-only", syscall.ENOSPC: "make room", syscall.EDQUOT: "quota",
	} {
		err := explain(fmt.Errorf("keep a copy: %w", &fs.PathError{Op: "open", Path: "config", Err: errno}))
		if hint := fault.HintOf(err); !strings.Contains(hint, want) || !strings.Contains(err.Error(), "config") {
			t.Errorf("%v: error %q, hint %q", errno, err, hint)
		}
	}
}
