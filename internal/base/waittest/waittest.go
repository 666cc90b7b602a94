// Package waittest lets tests wait for certain events, on a machine of any speed: a test never
// fails because something came late, only because it did not come at all. It also runs tests again
// in their own processes, as root where they need its rights.
package waittest

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// limit is the longest time for something that takes milliseconds on an idle machine.
const limit = 2 * time.Minute

// Until waits until something holds, and fails the test if that never comes.
func Until(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if !Comes(holds) {
		t.Fatalf("after %v still not: %s", limit, what)
	}
}

// Comes waits until something holds, and reports whether it does. One look may take as long as the
// pause between two looks; therefore the pause grows with the wait.
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
		t.Fatalf("%d is not a process id", pid)
	}
	Until(t, fmt.Sprintf("the end of process %d", pid), func() bool { return Ended(pid) })
}

// Ended reports whether a process is gone, or a zombie (proc_pid_stat(5)).
func Ended(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

// InTime tries something that has its own time limit and must show something within it: first with
// a limit that is enough on an idle machine, and then with longer ones. Only a failure with the
// longest is an error.
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
