package fanout

import (
	"runtime"
	"testing"
	"time"
)

// A process that is busy gets one processor after the other, and no more than there are for it.
func TestLoadGivesProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := load{max: 2, at: time.Unix(0, 0)}
	at, cpu := l.at, l.cpu
	for i, want := range []struct {
		used  time.Duration // within 100 ms
		procs int
	}{
		{50 * time.Millisecond, 1},
		{95 * time.Millisecond, 2}, // all of one: one more
		{95 * time.Millisecond, 2}, // half of two
		{190 * time.Millisecond, 2},
	} {
		at, cpu = at.Add(100*time.Millisecond), cpu+want.used
		if l.look(at, cpu); runtime.GOMAXPROCS(0) != want.procs {
			t.Errorf("step %d: %d processors, want %d", i, runtime.GOMAXPROCS(0), want.procs)
		}
	}
}

func TestLoadKeepsTheProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := load{at: time.Unix(0, 0)}
	if l.look(l.at.Add(time.Second), time.Second); runtime.GOMAXPROCS(0) != 1 {
		t.Errorf("%d processors", runtime.GOMAXPROCS(0))
	}
}
