//go:build linux

package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// asReaper is the first argument of a program where it only becomes another.
const asReaper = "as-reaper"

// Reap makes this process the server that a lab has started it for. A program that starts labs
// calls it first.
func Reap() {
	if len(os.Args) > 2 && os.Args[1] == asReaper {
		fmt.Fprintf(os.Stderr, "lab: %v\n", execAsReaper(os.Args[2:]))
		os.Exit(1)
	}
}

// execAsReaper becomes a program that orphans below it are given to (PR_SET_CHILD_SUBREAPER): sshd
// waits for any child, so that the time of an sftp-server whose session ended before it is counted,
// too.
func execAsReaper(argv []string) error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	return unix.Exec(argv[0], argv, os.Environ())
}

// ServerCPU is what sshd and all that it has waited for have used, in steps of 10 ms; it waits
// until all sessions have ended.
func (l *Lab) ServerCPU() (time.Duration, error) {
	stat, err := l.idleServer()
	if err != nil {
		return 0, err
	}
	// proc(5): utime, stime, cutime and cstime are fields 14 to 17, in ticks; the name before field
	// 3 may hold spaces.
	fields := strings.Fields(stat[strings.LastIndex(stat, ")")+1:])
	var ticks int64
	for _, field := range fields[11:15] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// idleServer is sshd's line of /proc once it has no children any more.
func (l *Lab) idleServer() (string, error) {
	pid := l.sshd.Pid()
	for range 3000 {
		children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		if err != nil {
			return "", err
		}
		if len(children) == 0 {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			return string(stat), err
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "", fmt.Errorf("sessions of sshd do not end")
}
