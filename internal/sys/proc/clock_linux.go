package proc

import (
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Clock reads the CPU time of one process.
//
// For a single-threaded process it is a perf task-clock event, which is exact to the microsecond
// even while the process runs on another core. Where that is not permitted, or with several
// threads, it is the POSIX CPU clock of the process. The kernel updates that one, like
// /proc/PID/schedstat, only at scheduling events and timer ticks (1-10 ms).
type Clock struct {
	pid  int
	perf int // file descriptor, or -1
}

// OpenClock returns a clock for a running process.
func OpenClock(pid int) (*Clock, error) {
	c := &Clock{pid: pid, perf: -1}
	if tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)); err == nil && len(tasks) == 1 {
		c.perf = openTaskClock(pid)
	}
	if _, err := c.CPU(); err != nil {
		c.Close()
		return nil, fmt.Errorf("read CPU clock of process %d: %w", pid, err)
	}
	return c, nil
}

// openTaskClock opens a perf task-clock counter, or returns -1. Excluding the kernel does not
// change the count of this software clock, but lets ordinary users open it at the usual
// perf_event_paranoid of 2.
func openTaskClock(pid int) int {
	attr := unix.PerfEventAttr{
		Type:   unix.PERF_TYPE_SOFTWARE,
		Config: unix.PERF_COUNT_SW_TASK_CLOCK,
		Size:   uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
		Bits:   unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv,
	}
	fd, err := unix.PerfEventOpen(&attr, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
	if err != nil {
		return -1
	}
	return fd
}

// OpenSelf returns a clock of the calling thread, to find out which kind is permitted here.
func OpenSelf() (*Clock, error) {
	c := &Clock{pid: os.Getpid(), perf: openTaskClock(0)}
	if _, err := c.CPU(); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// Exact reports whether readings are exact while the process runs.
func (c *Clock) Exact() bool { return c.perf >= 0 }

// Kind names the mechanism of the clock: "perf task-clock" or "process clock".
func (c *Clock) Kind() string {
	if c.perf >= 0 {
		return "perf task-clock"
	}
	return "process clock"
}

// CPU returns the CPU time used so far: since OpenClock for a perf clock, since the start of the
// process otherwise. Only differences mean anything.
func (c *Clock) CPU() (time.Duration, error) {
	if c.perf >= 0 {
		var b [8]byte
		if n, err := unix.Read(c.perf, b[:]); err != nil || n != len(b) {
			return 0, fmt.Errorf("read perf counter: %w", err)
		}
		return time.Duration(binary.NativeEndian.Uint64(b[:])), nil
	}
	return c.Asleep()
}

// Asleep returns the CPU time of a sleeping process since its start, by the count of the scheduler:
// exact then, and free of the time that a hypervisor gave to others meanwhile (steal), which a perf
// clock counts as work where the guest knows it (CONFIG_PARAVIRT_TIME_ACCOUNTING).
func (c *Clock) Asleep() (time.Duration, error) {
	var ts unix.Timespec
	// CPUCLOCK_SCHED of a process: clock_getcpuclockid(3).
	if err := unix.ClockGettime(int32(^c.pid)<<3|2, &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}

// Wait returns how long the process has been runnable without running (the run-queue delay of
// /proc/PID/schedstat); ok is false where that is unknown.
func (c *Clock) Wait() (delay time.Duration, ok bool) {
	fields, err := schedstat(c.pid)
	if err != nil {
		return 0, false
	}
	return fields[1], true
}

// Traffic returns the bytes that the process has read and written by system calls (rchar and wchar
// of /proc/PID/io, proc(5)); ok is false where they are unknown, as for a process of another user.
func (c *Clock) Traffic() (read, written int64, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", c.pid))
	if err != nil {
		return 0, 0, false
	}
	n, err := fmt.Sscanf(string(text), "rchar: %d\nwchar: %d", &read, &written)
	return read, written, err == nil && n == 2
}

// schedstat reads time on CPU and run-queue delay (Documentation/scheduler/sched-stats.rst).
func schedstat(pid int) (fields [2]time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return fields, err
	}
	return ParseSchedstat(string(text))
}

// ParseSchedstat reads the text of /proc/PID/schedstat: time on CPU and time waiting for one.
func ParseSchedstat(text string) (fields [2]time.Duration, err error) {
	words := strings.Fields(text)
	if len(words) < 2 {
		return fields, fmt.Errorf("schedstat %q: want three numbers", text)
	}
	for i := range fields {
		ns, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil || ns < 0 {
			return fields, fmt.Errorf("schedstat %q: %q is not a time", text, words[i])
		}
		fields[i] = time.Duration(ns)
	}
	return fields, nil
}

// Close releases the clock.
func (c *Clock) Close() {
	if c.perf >= 0 {
		unix.Close(c.perf)
		c.perf = -1
	}
}

// Self returns the CPU time of this process so far.
func Self() time.Duration { return reading(unix.CLOCK_PROCESS_CPUTIME_ID) }

// SinceBoot reads a clock that runs on while the machine is suspended.
func SinceBoot() time.Duration { return reading(unix.CLOCK_BOOTTIME) }

// reading reads a clock of the kernel (clock_gettime(2)); 0 where there is none.
func reading(clock int32) time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(clock, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}

// Yield lets others run that wait for this CPU (sched_yield(2)).
func Yield() { _, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }

// Nap sleeps without Go's scheduler, which would start threads to find other work: for a few
// microseconds or milliseconds during a timed operation.
func Nap(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}
