package proc

import (
	"fmt"
	"syscall"
)

// leastFiles is the number of files that a process must be able to open for anything to work: below
// it the Go runtime itself gives up at its event queue.
const leastFiles = 32

// EnoughFiles returns an error if the limit of open files (getrlimit(2)) is too small for any
// program in Go.
func EnoughFiles() error {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil || limit.Max >= leastFiles {
		return nil
	}
	return fmt.Errorf("this process may open %d files only, and needs %d", limit.Max, leastFiles)
}
