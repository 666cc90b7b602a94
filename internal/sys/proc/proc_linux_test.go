package proc_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sshpace/internal/sys/proc"
)

// TestWaitKeepsNoThread: forty processes are waited for by hardly more threads than there were, and
// each end is told.
func TestWaitKeepsNoThread(t *testing.T) {
	const count = 40
	before, ends := threads(t), make(chan error, count)
	var all []*exec.Cmd
	for range count {
		cmd := exec.Command("sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		all = append(all, cmd)
		go func() { ends <- proc.Wait(cmd) }()
	}
	// The runtime has made all threads that it needs when a while goes by without a new one.
	for last := 0; last != threads(t); time.Sleep(300 * time.Millisecond) {
		last = threads(t)
	}
	if more := threads(t) - before; more > count/2 {
		t.Errorf("%d more threads for %d processes", more, count)
	}
	for _, cmd := range all {
		cmd.Process.Kill()
	}
	for range count {
		select {
		case err := <-ends:
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != -1 {
				t.Errorf("a killed process ended with %v", err)
			}
		case <-time.After(time.Minute):
			t.Fatal("an end is not told")
		}
	}
}

func threads(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^Threads:\s+(\d+)`).FindSubmatch(status)
	if found == nil {
		t.Fatal("no threads in /proc/self/status")
	}
	n, _ := strconv.Atoi(string(found[1]))
	return n
}

// TestOrphansCount: what a program's child computes is known although the program ends without
// waiting for it.
func TestOrphansCount(t *testing.T) {
	spawner := proc.NewSpawner()
	defer spawner.Close()
	const busy = `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`
	took := func(script string) time.Duration {
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = t.TempDir()
		c, err := proc.Begin(cmd, spawner.Start)
		if err != nil {
			t.Fatal(err)
		}
		<-c.Ended
		if c.End != nil {
			t.Fatal(c.End)
		}
		return c.CPU()
	}
	waited := took(busy + " & wait")
	left := took("mkfifo ended; (" + busy + "; echo >ended) & exec cat ended")
	if left < waited/2 {
		t.Errorf("it took %v of CPU time where it was waited for, and %v where it was not", waited, left)
	}
}

// TestAdoptsWhileSpawnersAreOpen: nobody waits for what is left behind later, so that it is not
// ours then.
func TestAdoptsWhileSpawnersAreOpen(t *testing.T) {
	adopts := func() bool {
		var on int32
		if err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		return on != 0
	}
	outer, inner := proc.NewSpawner(), proc.NewSpawner()
	inner.Close()
	if !adopts() {
		t.Error("a spawner is open, and its orphans are not ours")
	}
	outer.Close()
	if adopts() {
		t.Error("no spawner is open, and orphans are ours")
	}
}
