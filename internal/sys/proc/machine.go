package proc

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/stat: USER_HZ is 100 on every Linux port.
const tick = 10 * time.Millisecond

// Load is the time that all cores together have been busy since boot.
type Load struct {
	Busy  time.Duration // running anything
	Steal time.Duration // taken by the hypervisor
}

// ReadLoad reads /proc/stat, in steps of 10 ms. ok is false without /proc.
func ReadLoad() (load Load, ok bool) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return load, false
	}
	return parseLoad(string(text))
}

// parseLoad reads the first line of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait,
// irq, softirq, steal.
func parseLoad(text string) (load Load, ok bool) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return load, false
	}
	var ticks [8]time.Duration
	for i := range ticks {
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil {
			return load, false
		}
		ticks[i] = time.Duration(n) * tick
	}
	return Load{Busy: ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6], Steal: ticks[7]}, true
}
