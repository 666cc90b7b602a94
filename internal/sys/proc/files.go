package proc

import (
	"fmt"
	"syscall"
)

// leastFiles is how many files a process must be able to open for anything to
// work: below it the Go runtime itself gives up at its event queue.
const leastFiles = 32

// EnoughFiles is an error under a limit of open files (getrlimit(2)) that is too small for
// any program in Go.
func EnoughFiles() error {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Max >= leastFiles {
		return nil
	}
	return fmt.Errorf("this process may open %d files only, and needs %d", limit.Max, leastFiles)
}
