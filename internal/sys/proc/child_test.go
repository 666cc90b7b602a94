package proc_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/sys/proc"
)

// begin starts a program that leads a process group.
func begin(t *testing.T, argv ...string) *proc.Child {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	proc.Lead(cmd)
	c, err := proc.Begin(cmd, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	return c
}

// TestChildEnds: a program that ends by itself is known to have, with what it left behind.
func TestChildEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	c := begin(t, "sh", "-c", `sleep 600 & echo $! >"$0"; exit 3`, file)
	if !c.Await(time.Minute) || !c.HasEnded() || c.ProcessState.ExitCode() != 3 || c.End == nil {
		t.Errorf("ended %v, %v", c.HasEnded(), c.End)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	left, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	waittest.Gone(t, left)
	if said, slain := c.Slain(); slain {
		t.Error(said)
	}
}

// TestChildIsKilled: whoever kills it is told from somebody else.
func TestChildIsKilled(t *testing.T) {
	ours, others := begin(t, "sleep", "600"), begin(t, "sleep", "600")
	if ours.Await(0) {
		t.Error("ended by itself")
	}
	ours.Kill()
	_ = syscall.Kill(others.Process.Pid, syscall.SIGTERM)
	if !others.Await(time.Minute) {
		t.Fatal("a signal did not end it")
	}
	if said, slain := ours.Slain(); slain || !ours.HasEnded() {
		t.Errorf("we killed it: %q", said)
	}
	if said, slain := others.Slain(); !slain || !strings.Contains(said, "sleep was killed by signal 15") {
		t.Errorf("somebody killed it: %q", said)
	}
	if _, err := proc.Begin(exec.Command("/nowhere/to/be/found"), (*exec.Cmd).Start); err == nil {
		t.Error("a program that is not there was started")
	}
}
