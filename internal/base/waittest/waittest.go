// Package waittest lets tests wait for what is certain to come, on a machine of any speed:
// a test never fails because something came late, only because it did not come at all. It also
// runs tests again in processes of their own, as root where they need its rights.
package waittest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// limit is how long something may take that takes milliseconds on an idle machine.
const limit = 2 * time.Minute

// Until waits until something holds, and ends the test where that never comes.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Comes(holds) {
		t.Fatalf("after %v still not: %s", limit, what)
	}
}

// Comes waits until something holds, and tells whether it came to that. To look may take as
// long as the pause between two looks, which is why that grows with the wait.
func Comes(holds func() bool) bool {
	const shortest, longest, part = 5 * time.Millisecond, 25 * time.Millisecond, 50
	for began := time.Now(); !holds(); {
		waited := time.Since(began)
		if waited > limit {
			return false
		}
		time.Sleep(min(max(waited/part, shortest), longest))
	}
	return true
}

// Gone waits until a process has ended, whether or not somebody has waited for it.
func Gone(t testing.TB, pid int) {
	t.Helper()
	if pid < 2 {
		t.Fatalf("%d is no process id", pid)
	}
	Until(t, fmt.Sprintf("the end of process %d", pid), func() bool { return Ended(pid) })
}

// Ended tells whether a process is not there, or a zombie (proc_pid_stat(5)).
func Ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// InTime tries what has a time limit of its own and shows something before that is over:
// with one that is enough on an idle machine, and where something was not reached in that,
// with longer ones. Only what fails with the longest is an error.
func InTime(t testing.TB, shortest time.Duration, try func(limit time.Duration) error) {
	t.Helper()
	for patience := shortest; ; patience *= 4 {
		err := try(patience)
		if err == nil {
			return
		}
		if patience > limit/4 {
			t.Fatalf("with a limit of %v: %v", patience, err)
		}
		t.Logf("with a limit of %v: %v", patience, err)
	}
}
