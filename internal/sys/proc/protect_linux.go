package proc

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// hide forbids others to trace this process (prctl(2) PR_SET_DUMPABLE), and locks its pages as they
// are first used. It does so only where no limit counts: beyond one the next allocation would fail,
// which ends the program. With a limit of 0 the kernel refuses at once.
func hide() (swapped bool, err error) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return false, err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return false, err
	}
	if limit.Cur = 0; limit.Max == unix.RLIM_INFINITY {
		limit.Cur = limit.Max
	}
	if err := unix.Setrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil {
		return false, err
	}
	if unix.Mlockall(unix.MCL_CURRENT|unix.MCL_FUTURE|unix.MCL_ONFAULT) == nil {
		return false, nil
	}
	swaps, err := os.ReadFile("/proc/swaps")
	return bytes.Count(swaps, []byte("\n")) > 1, err
}
