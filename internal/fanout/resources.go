package fanout

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"sshpace/internal/sys/proc"
)

// Resources are the limits of this machine. Zero fields are unknown and limit nothing.
type Resources struct {
	OpenFiles int   // descriptors that may still be opened
	Memory    int64 // bytes available
}

// reserveFDs are kept for files that a Go program opens on its own: name service, agent, event
// queue, spool, record of the run.
const reserveFDs = 16

// perHostBytes is the memory planned for one open connection.
const perHostBytes = 128 << 10

// maxSlots is the ceiling where nothing else limits.
const maxSlots = 1 << 20

// ownResources reads what is available. A limit that cannot be read is unknown.
func ownResources() *Resources {
	r := &Resources{OpenFiles: mostFiles() - openFiles()}
	if memory, ok := proc.AvailableMemory(); ok {
		r.Memory = max(memory, 1)
	}
	return r
}

// slots returns how many hosts may be connected at once: the user's limit (0: none), and the limits
// by descriptors and memory, never below 1.
func (r *Resources) slots(fanout, hosts, perHost, reserved int) int {
	n := min(max(hosts, 1), maxSlots)
	if fanout > 0 {
		n = min(n, fanout)
	}
	if r.OpenFiles != 0 {
		n = min(n, (r.OpenFiles-reserveFDs-reserved)/max(perHost, 1))
	}
	if r.Memory > 0 {
		n = min(n, int(r.Memory/2/perHostBytes))
	}
	return max(n, 1)
}

// mostFiles is the limit of open files, whose soft part the Go runtime has raised.
func mostFiles() int {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return maxSlots
	}
	return int(min(lim.Cur, 1<<20))
}

// openFiles counts the open files; if that cannot be read, the three standard streams and the event
// queue.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 5
	}
	return len(entries)
}

// Keepable returns how many connections to n hosts may stay open between runs, so that others find
// descriptors, too.
func Keepable(n int) int { return min(n, ownResources().OpenFiles/2) }

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
