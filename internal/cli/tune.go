package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"syscall"
	"time"
)

// Tuning of the Go runtime for a fan-out: thousands of short waits, little
// computing. With several processors the scheduler wakes threads for each of
// them, which costs a sixth of all CPU time (measured with 100 logins on two
// processors); the collector's default pace costs another part while the heap
// is small.
const (
	tuneEvery   = 50 * time.Millisecond
	tuneBusy    = 0.85     // share of a processor that asks for one more
	smallHeap   = 48 << 20 // bytes up to which the collector may be lazy
	smallTotal  = 64 << 20 // bytes of memory that it may use for being lazy
	lazyPercent = 400
)

// tuneRuntime starts with one processor and a lazy collector, and takes both
// back when the work asks for it. GOMAXPROCS, GOGC or GOMEMLIMIT of the user's stay.
func tuneRuntime(getenv func(string) string) (stop func()) {
	t := &tuner{procs: getenv("GOMAXPROCS") == "", lazy: getenv("GOGC") == "" && getenv("GOMEMLIMIT") == ""}
	undo := func() {}
	if t.procs {
		before := runtime.GOMAXPROCS(1)
		undo = func() { runtime.GOMAXPROCS(before) }
	}
	if t.lazy {
		before, limit, procs := debug.SetGCPercent(lazyPercent), debug.SetMemoryLimit(smallTotal), undo
		undo = func() { debug.SetGCPercent(before); debug.SetMemoryLimit(limit); procs() }
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go t.run(quit, done)
	return func() {
		close(quit)
		<-done
		undo()
	}
}

type tuner struct {
	procs, lazy bool // what is still to be watched
	cpu         time.Duration
}

func (t *tuner) run(quit, done chan struct{}) {
	defer close(done)
	tick := time.NewTicker(tuneEvery)
	defer tick.Stop()
	t.cpu = processCPU()
	for last := time.Now(); t.procs || t.lazy; {
		select {
		case <-quit:
			return
		case now := <-tick.C:
			t.look(now.Sub(last))
			last = now
		}
	}
}

func (t *tuner) look(span time.Duration) {
	cpu := processCPU()
	have := runtime.GOMAXPROCS(0)
	if t.procs && float64(cpu-t.cpu) > tuneBusy*float64(span)*float64(have) && have < runtime.NumCPU() {
		runtime.GOMAXPROCS(have + 1)
	}
	t.cpu = cpu
	if t.lazy && heapBytes() > smallHeap {
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
		t.lazy = false
	}
}

func heapBytes() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

func processCPU() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
