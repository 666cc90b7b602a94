package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// start runs sshpace in its own directory.
func start(t *testing.T, dir string, argv ...string) (cmd *exec.Cmd, errs *bytes.Buffer) {
	t.Helper()
	cmd, errs = exec.Command(argv[0], argv[1:]...), &bytes.Buffer{}
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin", "HOME=" + dir}
	cmd.Dir, cmd.Stderr = dir, errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, errs
}

// ends sends a signal to the process and checks its exit code.
func ends(t *testing.T, cmd *exec.Cmd, errs *bytes.Buffer, signal syscall.Signal, code int) {
	t.Helper()
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); codeOf(cmd) != code || strings.Contains(errs.String(), "goroutine ") {
		t.Errorf("ended with %v, want exit code %d\n%s", err, code, errs)
	}
}

// codeOf is the exit code of a command as a shell has it: a signal is 128 and its number.
func codeOf(cmd *exec.Cmd) int {
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// keptIn is the private directory below parent that a keeper of the process watches over; "" if
// there is none.
func keptIn(parent string, pid int) string {
	for keeper, p := range processes() {
		words := strings.Fields(p.args)
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", keeper))
		if len(words) == 4 && words[2] == "keep" && strings.HasPrefix(words[3], parent) && bytes.Contains(status, fmt.Appendf(nil, "PPid:\t%d\n", pid)) {
			return words[3]
		}
	}
	return ""
}

// sshpaceProgram is the path of sshpace, put on PATH by testscript.Main.
func sshpaceProgram(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sshpace")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// When the terminal goes, a bench saves what it has and leaves nothing.
func TestBenchHangup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, errs := start(t, dir, sshpaceProgram(t), "bench", "--budget", "10m", "--cipher", "aes128-gcm*", "--kex", "curve25519-sha256", "--out", "result.jsonl")
	waittest.Until(t, "a turn", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "result.jsonl"))
		return bytes.Contains(text, []byte(`"slices":`))
	})
	ends(t, cmd, errs, syscall.SIGHUP, 129)
	if !strings.Contains(errs.String(), "saved: result.jsonl") {
		t.Errorf("not saved:\n%s", errs)
	}
	left, _ := filepath.Glob(filepath.Join(dir, ".cache/sshpace/*"))
	left = slices.DeleteFunc(left, func(path string) bool { return strings.HasPrefix(filepath.Base(path), "openssh-") }) // answers of ssh, kept
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The copies of a proof are in memory that no restart of ours would free.
func TestProveHangup(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	result, err := filepath.Abs("testdata/recorded/before.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "policy.toml"), []byte(`cipher = ["aes128-ctr"]`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd, errs := start(t, dir, sshpaceProgram(t), "advise", "--prove", "--policy", "policy.toml", "--only", "scp", "--rounds", "9", "--size", "16M", result)
	var memory string
	waittest.Until(t, "a copy in memory", func() bool {
		if memory = keptIn("/dev/shm/", cmd.Process.Pid); memory == "" {
			return false
		}
		made, _ := filepath.Glob(memory + "/payload.*")
		return len(made) > 0
	})
	ends(t, cmd, errs, syscall.SIGHUP, 129)
	if _, err := os.Stat(memory); !os.IsNotExist(err) {
		t.Errorf("%q is still there: %v", memory, err)
	}
}

// A run of modes that is killed together with its keeper leaves files: the next one removes them,
// and says so.
func TestModesKilled(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, _ := start(t, dir, sshpaceProgram(t), "transfer", "--only", "scp", "--rounds", "100", "--size", "1M", "--dir", dir, "--out", "a.jsonl")
	var directory string
	waittest.Until(t, "a file to send", func() bool {
		directory = keptIn(dir, cmd.Process.Pid)
		made, _ := filepath.Glob(directory + "/payload.*")
		return directory != "" && len(made) > 0
	})
	for keeper, p := range processes() {
		if words := strings.Fields(p.args); len(words) == 4 && words[2] == "keep" && words[3] == directory {
			_ = syscall.Kill(keeper, syscall.SIGKILL)
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if _, err := os.Stat(directory); err != nil {
		t.Fatalf("somebody was left to remove it: %v", err)
	}
	out, err := sshpace(t, []string{"HOME=" + dir}, "transfer", "--only", "pipe", "--rounds", "1", "--rate", "8MB/s", "--size", "1M", "--dir", dir, "--out", filepath.Join(dir, "b.jsonl"))
	if !strings.Contains(string(out), "removed the rest of a killed run: "+directory) {
		t.Errorf("%v\n%s", err, out)
	}
	if left, _ := filepath.Glob(dir + "/sshpace-run-*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// The file that a disk is measured with has no name: no end of ours leaves it.
func TestMachineHangup(t *testing.T) {
	t.Parallel()
	for signal, code := range map[syscall.Signal]int{syscall.SIGHUP: 129, syscall.SIGKILL: 137} {
		dir := t.TempDir()
		cmd, errs := start(t, dir, sshpaceProgram(t), "limits", "--only", "disk read", "--size", "1G", "--dir", dir, "--out", "m.jsonl")
		waittest.Until(t, "a file on the disk", func() bool {
			open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", cmd.Process.Pid))
			for _, fd := range open {
				if name, _ := os.Readlink(fd); strings.HasPrefix(name, dir+"/sshpace-disk-") && strings.HasSuffix(name, "(deleted)") {
					return true
				}
			}
			return false
		})
		ends(t, cmd, errs, signal, code)
		if left, _ := filepath.Glob(dir + "/sshpace-disk-*"); len(left) > 0 {
			t.Errorf("%v left %v", signal, left)
		}
	}
}

// A signal that was ignored when the program began stays ignored: nohup(1), and jobs that a shell
// without job control starts in the background.
func TestIgnoredSignalsStayIgnored(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	for name, signal := range map[string]syscall.Signal{"HUP": syscall.SIGHUP, "INT": syscall.SIGINT} {
		dir := t.TempDir()
		fleetFiles(t, dir, s)
		mark := filepath.Join(dir, "began")
		cmd, errs := start(t, dir, "sh", "-c", `trap '' "$0"; exec "$@"`, name,
			sshpaceProgram(t), "run", "-F", filepath.Join(dir, "ssh_config"), "-w", "127.0.1.1", "--", "touch "+mark+"; sleep 1; echo whole >"+mark)
		waittest.Until(t, "a command", func() bool { _, err := os.Stat(mark); return err == nil })
		if err := cmd.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, errs)
		}
		if text, _ := os.ReadFile(mark); string(text) != "whole\n" {
			t.Errorf("%s: the command wrote %q", name, text)
		}
	}
}

// endings are the signals that end a command, and its exit codes.
var endings = []struct {
	signal syscall.Signal
	code   int
}{{syscall.SIGINT, 130}, {syscall.SIGTERM, 143}, {syscall.SIGHUP, 129}, {syscall.SIGQUIT, 131}}

// A command without anything to clean up ends at once, and for shells as the signal would have
// ended it; SIGQUIT would write a core.
func TestSignalEndsACommandThatWaits(t *testing.T) {
	t.Parallel()
	for _, end := range endings {
		dir := t.TempDir()
		fifo := filepath.Join(dir, "fifo.jsonl")
		if err := syscall.Mkfifo(fifo, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd, errs := start(t, dir, sshpaceProgram(t), "report", fifo)
		writer, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when report has opened it, too
		if err != nil {
			t.Fatal(err)
		}
		defer writer.Close()
		ends(t, cmd, errs, end.signal, end.code)
		signaled := cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled()
		if signaled == (end.signal == syscall.SIGQUIT) || errs.Len() > 0 {
			t.Errorf("%v: by a signal: %v\n%s", end.signal, signaled, errs)
		}
	}
}

// A configuration whose Match exec does not end holds up none of those who read it. It is ended
// with them, and so is what it started.
func TestSlowConfiguration(t *testing.T) {
	t.Parallel()
	for i, command := range []string{
		"doctor h", "bench h", "login h", "latency h", "config h", "run -w h true", "run --engine openssh -w h true",
		"copy -w h slow :", "fetch -w h :x .", "compat pssh -x -Fslow -H h true",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "slow"), []byte("Match exec \"echo $$ > pid.new; mv pid.new pid; sleep 600; true\"\nUser x\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			words := strings.Fields(command)
			if words[0] != "compat" {
				words = append([]string{words[0], "-F", "slow"}, words[1:]...)
			}
			cmd, errs := start(t, dir, append([]string{sshpaceProgram(t)}, words...)...)
			group := 0
			waittest.Until(t, "a Match exec", func() bool {
				var pid int
				text, _ := os.ReadFile(filepath.Join(dir, "pid"))
				if _, err := fmt.Sscan(string(text), &pid); err == nil {
					group, _ = syscall.Getpgid(pid)
				}
				return group > 1
			})
			end := endings[1+i%3] // pssh has an exit code of its own for SIGINT
			ends(t, cmd, errs, end.signal, end.code)
			waittest.Until(t, "the end of the Match exec", func() bool { return syscall.Kill(-group, 0) != nil })
		})
	}
}
