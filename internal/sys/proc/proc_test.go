package proc

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"

	"golang.org/x/sys/unix"
)

// spinning is a child that burns CPU until it is killed.
func spinning(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", "while :; do :; done")
	s := NewSpawner()
	if err := s.Start(cmd); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { KillGroup(cmd); _ = cmd.Wait(); s.Close() })
	return cmd
}

// computes uses CPU for about a tenth of a second, says so, and sleeps.
const computes = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo done; read end"

// The clock must agree with what wait4(2) accounts in the end.
func TestClockAgreesWithRusage(t *testing.T) {
	for _, forced := range []string{"best", "process clock"} {
		t.Run(forced, func(t *testing.T) {
			cmd := exec.Command("sh", "-c", computes)
			in, out := waittest.Piped(t, cmd)
			clock, err := OpenClock(cmd.Process.Pid)
			if err != nil {
				t.Fatal(err)
			}
			if forced != "best" {
				clock.Close()
			}
			defer clock.Close()
			before, _ := ReadLoad()
			_, _ = out.Read(make([]byte, 1)) // from here on it sleeps
			used, err := clock.CPU()
			if err != nil {
				t.Fatal(err)
			}
			in.Close()
			_ = cmd.Wait()
			after, _ := ReadLoad()
			total := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			// Up to three ticks of 10 ms and what it takes to end, and what other guests took (see
			// Asleep).
			stolen := after.Steal - before.Steal
			if diff := total - used; diff < -30*time.Millisecond-stolen || diff > 60*time.Millisecond {
				t.Errorf("%s: %v on the clock, %v accounted, %v stolen", clock.Kind(), used, total, stolen)
			}
		})
	}
}

func TestWaitIsThere(t *testing.T) {
	clock, err := OpenClock(spinning(t).Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	if _, ok := clock.Wait(); !ok {
		t.Error("no run-queue delay")
	}
}

func TestTraffic(t *testing.T) {
	clock, err := OpenSelf()
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	read, written, ok := clock.Traffic()
	if !ok {
		t.Fatal("no traffic of this process")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	block := make([]byte, 5000)
	if _, err := w.Write(block); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Read(block); err != nil {
		t.Fatal(err)
	}
	moreRead, moreWritten, _ := clock.Traffic()
	// Reading /proc itself counts too.
	if got := moreRead - read; got < 5000 || got > 6000 {
		t.Errorf("%d bytes read, want 5000 and a file of /proc", got)
	}
	if got := moreWritten - written; got != 5000 {
		t.Errorf("%d bytes written, want 5000", got)
	}
}

func TestOpenClockOfNoProcess(t *testing.T) {
	cmd := exec.Command("/bin/true")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if clock, err := OpenClock(cmd.Process.Pid); err == nil {
		clock.Close()
		t.Error("clock of a dead process: want an error")
	}
}

// A child must die with the thread that started it.
func TestChildrenDieWithTheSpawner(t *testing.T) {
	s := NewSpawner()
	cmd := exec.Command("/bin/sh", "-c", "echo up; while :; do sleep 1; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(cmd); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	s.Close()
	err = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("child ended with %v, want killed", err)
	}
}

func TestParseSchedstat(t *testing.T) {
	fields, err := ParseSchedstat("123 456 7\n")
	if err != nil || fields[0] != 123 || fields[1] != 456 {
		t.Errorf("got %v, %v", fields, err)
	}
	for _, text := range []string{"", "1", "x y z", "-1 2 3"} {
		if _, err := ParseSchedstat(text); err == nil {
			t.Errorf("ParseSchedstat(%q): want an error", text)
		}
	}
}

func TestParseLoad(t *testing.T) {
	//                     user nice sys idle iowait irq soft steal
	load, ok := parseLoad("cpu  10 1 5 1000 3 2 1 7 0 0\ncpu0 1 2 3\n")
	if want := (Load{Busy: 190 * time.Millisecond, Steal: 70 * time.Millisecond}); !ok || load != want {
		t.Errorf("got %+v %v, want %+v", load, ok, want)
	}
	if _, ok := parseLoad("intr 1 2\n"); ok {
		t.Error("a foreign text was read as load")
	}
}

func ExampleClock() {
	clock, err := OpenClock(syscall.Getpid())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer clock.Close()
	_, err = clock.CPU()
	fmt.Println(err)
	// Output: <nil>
}

// A child is out of reach of the terminal's Ctrl-C: in a group of its own or, if it asks for it, in
// a session of its own.
func TestChildrenLeadTheirGroup(t *testing.T) {
	s := NewSpawner()
	defer s.Close()
	for _, session := range []bool{false, true} {
		cmd := exec.Command("sleep", "60")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: session}
		if err := s.Start(cmd); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		group, groupErr := unix.Getpgid(pid)
		sid, sidErr := unix.Getsid(pid)
		if groupErr != nil || sidErr != nil || group != pid || (sid == pid) != session {
			t.Errorf("session %v: process %d is in group %d, session %d", session, pid, group, sid)
		}
		KillGroup(cmd)
		_ = cmd.Wait()
	}
}

// What a process that sleeps has used is what the kernel accounts for it in the end.
func TestAsleep(t *testing.T) {
	cmd := exec.Command("sh", "-c", computes)
	in, out := waittest.Piped(t, cmd)
	clock, err := OpenClock(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	if _, err := out.Read(make([]byte, 8)); err != nil {
		t.Fatal(err)
	}
	var before, used time.Duration
	for used == 0 || used != before { // until it sleeps
		time.Sleep(20 * time.Millisecond)
		before = used
		if used, err = clock.Asleep(); err != nil {
			t.Fatal(err)
		}
	}
	in.Close()
	_ = cmd.Wait()
	total := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if diff := total - used; diff < 0 || diff > 10*time.Millisecond+total/10 {
		t.Errorf("%v while it slept, %v accounted in the end", used, total)
	}
}
