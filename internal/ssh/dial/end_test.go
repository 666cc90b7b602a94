package dial_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
)

// remote is a command that tells its process id in a file and then lives long.
func remote(dir string) fleet.Command {
	return fleet.Command{Line: "echo $$ > " + dir + "/$$.tmp; mv " + dir + "/$$.tmp " + dir + "/$$.pid; echo started; sleep 600; echo never"}
}

// gone waits until none of the remote commands lives; that another number of them has started is an
// error.
func gone(t *testing.T, dir string, want int) error {
	t.Helper()
	pids, _ := filepath.Glob(dir + "/*.pid")
	for _, file := range pids {
		var pid int
		fmt.Sscanf(filepath.Base(file), "%d.pid", &pid)
		waittest.Gone(t, pid)
	}
	if len(pids) != want {
		return fmt.Errorf("%d commands have started, want %d", len(pids), want)
	}
	return nil
}

// TestTimeoutEndsRemoteCommand: --timeout must not leave the command behind.
func TestTimeoutEndsRemoteCommand(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		dir := t.TempDir()
		res := run(t, fanout.Params{CommandTimeout: limit}, sshdTarget(s), hosts(3), remote(dir), &sshtest.Told{})
		for _, r := range res {
			if r.Class != fleet.CommandTimeout || r.Ran != fleet.RanYes || r.Signal != "TERM" || r.Status() != fleet.Failed {
				t.Errorf("got %+v", r)
			}
		}
		return gone(t, dir, 3)
	})
}

// TestTimeoutIgnoredTerm: a command that ignores TERM gets KILL.
func TestTimeoutIgnoredTerm(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		dir := t.TempDir()
		cmd := remote(dir)
		cmd.Line = "trap '' TERM; " + cmd.Line
		r := run(t, fanout.Params{CommandTimeout: limit}, sshdTarget(s), hosts(1), cmd, &sshtest.Told{})[0]
		if err := gone(t, dir, 1); err != nil || r.Class == fleet.CommandTimeout && r.Signal == "KILL" {
			return err
		}
		return fmt.Errorf("got %+v", r)
	})
}

// TestTimeoutBehindStuckOutput: a command is ended although nobody takes its output.
func TestTimeoutBehindStuckOutput(t *testing.T) {
	t.Parallel()
	for _, s := range []*sshtest.Sshd{sshtest.StartSshd(t), sshtest.StartSshdForOther(t)} { // as root, by a second session
		dir, release := sshtest.OpenDir(t, 0o777), make(chan struct{})
		c := &sshtest.Told{OnOutput: func(fleet.Event) error { <-release; return nil }}
		ended := make(chan []fleet.Result)
		go func() {
			ended <- run(t, fanout.Params{CommandTimeout: 5 * time.Second}, sshdTarget(s), hosts(1), remote(dir), c)
		}()
		waittest.Until(t, "the command", func() bool { pids, _ := filepath.Glob(dir + "/*.pid"); return len(pids) == 1 })
		if err := gone(t, dir, 1); err != nil {
			t.Error(err)
		}
		close(release)
		if r := (<-ended)[0]; r.Class != fleet.CommandTimeout || strings.Contains(r.Err, "may still run there") {
			t.Errorf("got %+v", r)
		}
	}
}

// TestTimeoutBusyServer: a server that takes its time to end a command is waited for: the command
// does not go on there.
func TestTimeoutBusyServer(t *testing.T) {
	t.Parallel()
	s := (&sshtest.Server{Exec: func(x *sshtest.Session) {
		for name := range x.Signals {
			if name == "KILL" {
				time.Sleep(2 * fleet.KillGrace)
				x.Signal(name)
				return
			}
		}
	}}).Start(t)
	r := run(t, fanout.Params{CommandTimeout: time.Second}, target(t, s), hosts(1), fleet.Command{Line: "x"}, &sshtest.Told{})[0]
	if r.Class != fleet.CommandTimeout || r.Signal != "KILL" || strings.Contains(r.Err, "may still run there") {
		t.Errorf("got %+v", r)
	}
}

// TestLateRefusal: a server that refuses to signal root's commands is believed although its first
// answer is late: a second session ends the command.
func TestLateRefusal(t *testing.T) {
	t.Parallel()
	drain, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	var server, command int
	c := sshtest.Told{OnOutput: func(e fleet.Event) error {
		if fmt.Sscan(string(e.Data), &server, &command); server < 2 {
			return fmt.Errorf("%d is not a process id", server)
		}
		interrupt()
		time.AfterFunc(3*time.Second, func() { syscall.Kill(server, syscall.SIGCONT) })
		return syscall.Kill(server, syscall.SIGSTOP)
	}}
	run(t, fanout.Params{Drain: drain}, sshdTarget(sshtest.StartSshd(t)), hosts(1), fleet.Command{Line: "echo $PPID $$; sleep 600; echo never"}, &c)
	waittest.Gone(t, command)
}

// TestForcedCommandRunsOnce: sshd refuses to signal a forced command, and a second session for
// ending it would run it again.
func TestForcedCommandRunsOnce(t *testing.T) {
	t.Parallel()
	log := sshtest.OpenDir(t, 0o755) + "/log"
	if err := errors.Join(os.WriteFile(log, nil, 0o666), os.Chmod(log, 0o666)); err != nil {
		t.Fatal(err)
	}
	s := sshtest.StartSshdForOther(t, "ForceCommand echo $$ >> "+log+"; exec sleep 30")
	tg := sshdTarget(s)
	r := run(t, fanout.Params{CommandTimeout: time.Second}, tg, hosts(1), fleet.Command{Line: "x"}, &sshtest.Told{})[0]
	if r.Class != fleet.CommandTimeout || !strings.Contains(r.Err, "may still run there") {
		t.Errorf("got %+v", r)
	}
	// It begins even where its time was over before: the request was made.
	var text []byte
	var err error
	waittest.Until(t, "the forced command", func() bool { text, err = os.ReadFile(log); return strings.HasSuffix(string(text), "\n") })
	if err != nil || strings.Count(string(text), "\n") != 1 {
		t.Fatalf("the forced command ran as %q, %v", text, err)
	}
	var pid int
	if fmt.Sscan(string(text), &pid); pid > 1 {
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// TestInterruptOnce: the commands are signalled, nothing new starts, all is told.
func TestInterruptOnce(t *testing.T) {
	s, dir := sshtest.StartSshd(t), t.TempDir()
	drain, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	started := 0
	c := sshtest.Told{OnOutput: func(fleet.Event) error {
		if started++; started == 5 {
			interrupt()
		}
		return nil
	}}
	res := run(t, fanout.Params{Fanout: 5, Drain: drain}, sshdTarget(s), hosts(20), remote(dir), &c)
	for i, r := range res {
		switch {
		case i < 5 && (r.Class != fleet.Cancelled || r.Ran != fleet.RanYes || r.Signal != "TERM"):
			t.Errorf("got %+v", r)
		case i >= 5 && r.Status() != fleet.NotStarted:
			t.Errorf("started after the interrupt: %+v", r)
		}
	}
	if err := gone(t, dir, 5); err != nil {
		t.Error(err)
	}
}

// TestClosedOutput: `| head -1` ends the run and the commands.
func TestClosedOutput(t *testing.T) {
	s, dir := sshtest.StartSshd(t), t.TempDir()
	e := dial.New(resolve(sshdTarget(s)), dial.Options{})
	defer e.Close()
	started := 0
	c := sshtest.Told{OnOutput: func(fleet.Event) error {
		if started++; started == 3 {
			return syscall.EPIPE
		}
		return nil
	}}
	_, err := fanout.Run(context.Background(), fanout.Params{}, hosts(3), remote(dir), e, &c)
	if !errors.Is(err, syscall.EPIPE) {
		t.Errorf("got %v", err)
	}
	if err := gone(t, dir, 3); err != nil {
		t.Error(err)
	}
}

// TestEndlessOutput has one host send 96 MB and end when all others have, one a line of 32 MB, and
// the others something short: memory stays small and the others are not held up.
func TestEndlessOutput(t *testing.T) {
	const big, line, n = int64(96 << 20), int64(32 << 20), 50
	s := startHelper(t)
	var c sshtest.Told
	var mu sync.Mutex
	var peak uint64
	var seen int64
	sizes := map[int]int64{}
	c.OnOutput = func(e fleet.Event) error {
		mu.Lock()
		defer mu.Unlock()
		sizes[e.Index] += int64(len(e.Data))
		if seen += int64(len(e.Data)); seen > 8<<20 {
			seen = 0
			peak = max(peak, rss())
		}
		return nil
	}
	before := rss()
	hs := hosts(n)
	e := byName{dial.New(resolve(s.target), dial.Options{}), map[string]string{hs[0].Name: fmt.Sprintf("held %d", big), hs[1].Name: fmt.Sprintf("line %d", line)}}
	defer e.Close()
	done := 0
	c.OnDone = func(fleet.Result) {
		if done++; done == n-1 {
			os.WriteFile(s.release, nil, 0o600)
		}
	}
	if _, err := fanout.Run(context.Background(), fanout.Params{}, hs, fleet.Command{Line: "echo"}, e, &c); err != nil {
		t.Fatal(err)
	}
	if sizes[0] != big || sizes[1] != line {
		t.Errorf("%d and %d bytes came, want %d and %d", sizes[0], sizes[1], big, line)
	}
	t.Logf("resident memory: %d MB before, %d MB at most", before>>20, peak>>20)
	if !raceEnabled && peak > before+uint64(big/2) {
		t.Errorf("resident memory grew from %d to %d MB", before>>20, peak>>20)
	}
}

// TestSlowOutput: many hosts that talk faster than our output takes it must not pile up in memory.
func TestSlowOutput(t *testing.T) {
	const n, each = 40, 4 << 20 // 160 MB if all of it were read at once
	s := startHelper(t)
	var c sshtest.Told
	var peak uint64
	calls := 0
	c.OnOutput = func(fleet.Event) error {
		time.Sleep(200 * time.Microsecond)
		if calls++; calls%100 == 0 {
			peak = max(peak, memory())
		}
		return nil
	}
	before := memory()
	res := run(t, fanout.Params{}, s.target, hosts(n), fleet.Command{Line: fmt.Sprintf("bytes %d", each)}, &c)
	for _, r := range res {
		if r.OutBytes != each {
			t.Fatalf("%d bytes, want %d: %+v", r.OutBytes, each, r)
		}
	}
	t.Logf("%d MB more at most", int64(peak-before)>>20)
	if !raceEnabled && int64(peak-before) > n<<20 { // a quarter of the 2 MiB windows and their garbage
		t.Errorf("%d MB piled up", int64(peak-before)>>20)
	}
}

// TestFewDescriptors runs 60 hosts in a process that may open 64 files: this test binary again,
// because the limit cannot be raised again.
func TestFewDescriptors(t *testing.T) {
	if os.Getenv("SSHPACE_TEST_FDS") == "" {
		waittest.Again(t, []string{"SSHPACE_TEST_FDS=1"})
		return
	}
	s := startHelper(t)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 64, Max: 64}); err != nil {
		t.Fatal(err)
	}
	res := run(t, fanout.Params{}, s.target, hosts(60), fleet.Command{Line: "echo"}, &sshtest.Told{})
	for _, r := range res {
		if r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
	}
}

// rss is the resident memory of this process (proc(5) statm).
func rss() uint64 {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident uint64
	fmt.Sscan(strings.TrimSpace(string(data)), &size, &resident)
	return resident * uint64(os.Getpagesize())
}
