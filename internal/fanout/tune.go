package fanout

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"sshpace/internal/fleet"
	"sshpace/internal/sys/proc"
)

// Tuning of the Go runtime for a fan-out: thousands of short waits, little computing. With several
// processors the scheduler wakes threads for each of them, which costs a sixth of all CPU time
// (measured with 100 logins on two processors); the collector's default pace costs another part
// while the heap is small.
const (
	tuneEvery   = 50 * time.Millisecond
	smallTotal  = 80 << 20 // bytes of memory, stacks and all, up to which the collector may be lazy
	lazyLimit   = 96 << 20 // bytes that it may use for being lazy: beyond them it would work all the time
	lazyPercent = 400
)

// Tune starts with one processor and makes the collector lazy once the run lasts, and undoes both
// when the work requires it: load adds processors. A Dialogue, which moves data, has all processors
// at once: servers on this machine leave it too small a share of one to be given another, and wait
// for it. GOMAXPROCS, GOGC or GOMEMLIMIT of the user stay.
func Tune(getenv func(string) string, command fleet.Command) (stop func()) {
	t := &tuner{collector: untouched, undo: func() {}}
	if getenv("GOMAXPROCS") == "" && command.Dialogue == nil {
		t.load.max = runtime.NumCPU()
		before := runtime.GOMAXPROCS(1)
		t.undo = func() { runtime.GOMAXPROCS(before) }
	}
	if getenv("GOGC") != "" || getenv("GOMEMLIMIT") != "" {
		t.collector = standard
	}
	t.load.at, t.load.cpu = time.Now(), proc.Self()
	quit, done := make(chan struct{}), make(chan struct{})
	go t.run(quit, done)
	return func() {
		close(quit)
		<-done
		t.undo()
	}
}

// collector is the state of Go's garbage collector.
type collector int

const (
	untouched collector = iota // a run that ends before the first check needs none, and each change stops all goroutines
	lazy
	standard // or the user's
)

type tuner struct {
	load      load
	collector collector
	undo      func()
}

func (t *tuner) run(quit, done chan struct{}) {
	defer close(done)
	tick := time.NewTicker(tuneEvery)
	defer tick.Stop()
	for {
		select {
		case <-quit:
			return
		case <-tick.C:
			t.look()
		}
	}
}

func (t *tuner) look() {
	t.load.look(time.Now(), proc.Self())
	if t.collector == untouched {
		t.collector = lazy
		before, limit, undo := debug.SetGCPercent(lazyPercent), debug.SetMemoryLimit(lazyLimit), t.undo
		t.undo = func() { debug.SetGCPercent(before); debug.SetMemoryLimit(limit); undo() }
	}
	if t.collector == lazy && memory() > smallTotal {
		debug.SetGCPercent(100)
		debug.SetMemoryLimit(math.MaxInt64)
		t.collector = standard
	}
}

// memory returns the bytes that the limit counts (runtime/debug.SetMemoryLimit).
func memory() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}
