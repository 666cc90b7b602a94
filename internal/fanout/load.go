package fanout

import (
	"runtime"
	"time"
)

// load adds one processor at a time, up to max, while the process uses all it has.
type load struct {
	max int // processors
	at  time.Time
	cpu time.Duration
}

// busyShare is the share of all processors from which on the process uses all it has.
const busyShare = 0.85

func (l *load) look(now time.Time, cpu time.Duration) {
	have := runtime.GOMAXPROCS(0)
	if busy := float64(cpu-l.cpu) > busyShare*float64(now.Sub(l.at))*float64(have); busy && have < l.max {
		runtime.GOMAXPROCS(have + 1)
	}
	l.at, l.cpu = now, cpu
}
