package fleet

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Load tells whether this process uses all the CPU it can get: more logins at
// once would then only make each of them slower. It is the one that decides how
// many processors the process may use.
type Load struct {
	mu    sync.Mutex
	most  int // processors
	at    time.Time
	cpu   time.Duration
	isHot bool
}

// busyShare of all processors, over at least busyInterval, is "all it can get".
const (
	busyShare    = 0.85
	busyInterval = 50 * time.Millisecond
)

// newLoad watches this process. While it is busy it is given processors, one at
// a time, up to most; 0: it keeps those that it has.
func newLoad(most int) *Load { return &Load{most: most, at: time.Now(), cpu: cpuTime()} }

// busy looks again where it is time to, and says what it saw last. Processors are
// only given where somebody asks.
func (l *Load) busy() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.at) >= busyInterval {
		l.look(now, cpuTime())
	}
	return l.isHot
}

func (l *Load) look(now time.Time, cpu time.Duration) {
	have := runtime.GOMAXPROCS(0)
	l.isHot = float64(cpu-l.cpu) > busyShare*float64(now.Sub(l.at))*float64(have)
	if l.isHot && have < l.most {
		runtime.GOMAXPROCS(have + 1)
		l.isHot = false
	}
	l.at, l.cpu = now, cpu
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
