package hub

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout/job"
)

// A disk that gets full is said before it is; and if others fill it, the hub goes on when it has
// room again. Nothing is lost that was confirmed.
func TestDiskIsFull(t *testing.T) {
	t.Parallel()
	if !waittest.AsRoot(t) {
		return
	}
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "tmpfs", 0, "size=96m,mode=700"); err != nil {
		t.Fatal(err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	s := serve(t, job.Serving{Dir: filepath.Join(dir, "hub")})
	b := busOf(t, s, job.LauncherRole("web"))
	var after uint64
	n := 0
	add := func() error {
		seq, err := b.Append(soon(t), job.Entry{Subject: event, Data: make([]byte, 100<<10)}, after, fmt.Sprint(n))
		if err == nil {
			after, n = seq, n+1
		}
		return err
	}
	ballast := filepath.Join(dir, "ballast")
	fill := func(size int) {
		if err := os.WriteFile(ballast, make([]byte, size), 0o600); err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	empty := func() {
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(20 * time.Second)
		for err := error(job.ErrFull); err != nil; err = add() {
			if time.Sleep(lookEvery); time.Now().After(until) {
				t.Fatalf("with room: %v", err)
			}
		}
	}
	fill(75 << 20)
	err := add()
	for err == nil {
		time.Sleep(5 * time.Millisecond)
		err = add()
	}
	if !errors.Is(err, job.ErrFull) || s.broken() {
		t.Errorf("after %d entries: %v", n, err)
	}
	empty()
	fill(96 << 20) // at once
	done := make(chan error)
	go func() { done <- add() }()
	time.Sleep(10 * lookEvery)
	select {
	case err := <-done:
		if !errors.Is(err, job.ErrFull) {
			t.Errorf("on a full disk: %v", err)
		}
		empty()
	default:
		if !s.broken() {
			t.Error("the hub says nothing")
		}
		_ = os.Remove(ballast)
		if err := <-done; err != nil {
			t.Errorf("after that: %v", err)
		}
	}
	if all := collect(t, b, "event.web.j-1.*", 0); len(all) != n {
		t.Errorf("%d entries are kept, %d were confirmed", len(all), n)
	}
}

// A quota, or a limit for files, is seen only by what cannot be written: that is said, too, and the
// hub lives on.
func TestFileMayNotGrow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process(t, dir, "prlimit", "--fsize=1500000")
	b, err := NATS{}.Dial(t.Context(), job.Address{Role: job.LauncherRole("web"), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	var after uint64
	n := 0
	for ; err == nil && n < 30; n++ {
		after, err = b.Append(soon(t), job.Entry{Subject: event, Data: make([]byte, 100<<10)}, after, fmt.Sprint(n))
	}
	if !errors.Is(err, job.ErrFull) || n < 10 {
		t.Errorf("after %d entries: %v", n, err)
	}
	if all := collect(t, b, event, 0); len(all) != n-1 {
		t.Errorf("%d entries are kept, %d were confirmed", len(all), n-1)
	}
}
