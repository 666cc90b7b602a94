//go:build linux

package relay

import (
	"context"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// punctual gives the caller its own thread that wakes up on time: without the slack that the kernel
// allows itself, and before other programs where the user may ask for that. On a busy machine a
// sleeper without this is late by the other programs' time slices, milliseconds. A user who may not
// ask gets the shortest slice of its own, which the scheduler gives a core sooner (since Linux
// 6.12). The thread ends with the goroutine.
func punctual() {
	const shortest = 100 * time.Microsecond
	runtime.LockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	if before(myself) == nil {
		watchman()
	} else {
		_ = unix.SchedSetAttr(myself, &unix.SchedAttr{Policy: unix.SCHED_NORMAL, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Runtime: uint64(shortest)}, 0)
	}
}

const myself = 0

// before gives a thread priority over other programs.
func before(thread int) error {
	return unix.SchedSetAttr(thread, &unix.SchedAttr{Policy: unix.SCHED_RR, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1}, 0)
}

// watchman gives priority, too, to the thread by which Go's scheduler looks after threads in system
// calls. A thread that returns from one waits actively until it has been looked after (casgstatus,
// in exitsyscall): if it had preempted the watchman just then, it would wait for ever; 50 ms later
// Linux lets others run. The watchman is the second thread of a program of Go.
var watchman = sync.OnceFunc(func() {
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return
	}
	var threads []int
	for _, task := range tasks {
		if thread, err := strconv.Atoi(task.Name()); err == nil {
			threads = append(threads, thread)
		}
	}
	slices.Sort(threads)
	const second = 1
	if len(threads) > second && threads[0] == os.Getpid() {
		_ = before(threads[second])
	}
})

// A sleeper that stays awake in the end is on time however late the kernel would have woken it: on
// a guest of a busy host that is a millisecond in one case of a hundred. It may be for a part of
// the time only.
const (
	awake   = time.Millisecond
	portion = 8
)

// early returns how long before then a sleeper wakes up to wait awake: a part of the time since its
// work at last.
func early(then, last time.Time) time.Duration {
	return min(awake, max(0, then.Sub(last)/portion))
}

// sleepUntil sleeps until a moment to within some microseconds; it returns false when life, which
// it checks now and then, ends first. Go's own timers would be late by up to a millisecond on an
// idle process, and by more on a busy machine.
func sleepUntil(life context.Context, when time.Time) bool {
	const look = 50 * time.Millisecond
	for life.Err() == nil {
		rest := min(time.Until(when), look)
		if rest <= 0 {
			return true
		}
		ts := unix.NsecToTimespec(int64(rest))
		_ = unix.Nanosleep(&ts, nil)
	}
	return false
}
