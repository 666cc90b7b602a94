package cli

import (
	"fmt"
	"syscall"
)

// leastFiles is how many files a process must be able to open for anything to
// work: below it the Go runtime itself gives up at its event queue.
const leastFiles = 32

// enoughFiles refuses to start under a limit of open files (ulimit -n) that is
// too small for any command.
func enoughFiles() error {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Max >= leastFiles {
		return nil
	}
	return withHint(fmt.Errorf("this process may open %d files only, and needs %d", limit.Max, leastFiles),
		"raise the limit: ulimit -n 1024")
}
