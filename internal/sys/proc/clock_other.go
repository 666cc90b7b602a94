//go:build !linux

package proc

import (
	"syscall"
	"time"
)

// Self returns the CPU time of this process so far.
func Self() time.Duration {
	var used syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil {
		return 0
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
