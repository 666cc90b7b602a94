package fleet

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Resources are what this machine has to give. Zero fields are unknown and limit
// nothing.
type Resources struct {
	OpenFiles int   // descriptors that may still be opened
	Memory    int64 // bytes available
}

// reserveFDs are kept for what a Go program opens on its own: name service,
// agent, event queue, spool, record of the run.
const reserveFDs = 16

// perHostBytes is the memory planned for one open connection.
const perHostBytes = 128 << 10

// maxSlots is the ceiling where nothing else limits.
const maxSlots = 1 << 16

// ownResources raises the soft limit of open files to the hard one and reads what is
// available. A limit that cannot be read is unknown.
func ownResources() *Resources {
	return &Resources{OpenFiles: raiseFiles() - openFiles(), Memory: memAvailable()}
}

// slots is how many hosts may be connected at once: the cap that was asked for
// (0: none), and what descriptors and memory allow, never below 1.
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

func raiseFiles() int {
	var lim syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &lim) != nil {
		return maxSlots
	}
	if lim.Cur < lim.Max {
		up := lim
		up.Cur = up.Max
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &up) == nil {
			lim = up
		}
	}
	return int(min(lim.Cur, 1<<20))
}

// openFiles counts what is open now; where that cannot be read, the three
// standard streams and the event queue.
func openFiles() int {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 5
	}
	return len(entries)
}

// memAvailable reads MemAvailable (proc(5)); 0 where there is no such file.
func memAvailable() int64 {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if rest, ok := strings.CutPrefix(s.Text(), "MemAvailable:"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb << 10
		}
	}
	return 0
}
