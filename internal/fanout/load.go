package fanout

import (
	"runtime"
	"time"
)

// load is the CPU that this process uses. While it uses all that it can get it is given
// processors, one at a time, up to most.
type load struct {
	most int // processors
	at   time.Time
	cpu  time.Duration
}

// busyShare of all processors is "all it can get".
const busyShare = 0.85

func (l *load) look(now time.Time, cpu time.Duration) {
	have := runtime.GOMAXPROCS(0)
	if busy := float64(cpu-l.cpu) > busyShare*float64(now.Sub(l.at))*float64(have); busy && have < l.most {
		runtime.GOMAXPROCS(have + 1)
	}
	l.at, l.cpu = now, cpu
}
