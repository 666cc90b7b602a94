package fleet

import (
	"runtime"
	"testing"
	"time"
)

// A process that is busy gets one processor after the other, and is busy in
// earnest once there are no more.
func TestLoadGivesProcessorsBeforeItIsBusy(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := newLoad(2)
	at, cpu := l.at, l.cpu
	for i, want := range []struct {
		used  time.Duration // within 100 ms
		busy  bool
		procs int
	}{
		{50 * time.Millisecond, false, 1},
		{95 * time.Millisecond, false, 2}, // all of one: one more
		{95 * time.Millisecond, false, 2}, // half of two
		{190 * time.Millisecond, true, 2},
		{20 * time.Millisecond, false, 2},
	} {
		at, cpu = at.Add(100*time.Millisecond), cpu+want.used
		if l.look(at, cpu); l.isHot != want.busy || runtime.GOMAXPROCS(0) != want.procs {
			t.Errorf("step %d: busy %v with %d processors, want %v with %d", i, l.isHot, runtime.GOMAXPROCS(0), want.busy, want.procs)
		}
	}
}

func TestLoadKeepsTheProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := newLoad(0)
	if l.look(l.at.Add(time.Second), l.cpu+time.Second); !l.isHot || runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("busy %v with %d processors", l.isHot, runtime.GOMAXPROCS(0))
	}
}
