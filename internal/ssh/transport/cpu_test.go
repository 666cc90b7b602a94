package transport_test

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cpu is the CPU time of this process so far; servers are others.
func cpu(t testing.TB) time.Duration {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		t.Fatal(err)
	}
	return time.Duration(ts.Nano())
}
