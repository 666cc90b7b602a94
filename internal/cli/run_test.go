package cli_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// fleetFiles writes an ssh_config and known_hosts that reach s under every name in 127.0.0.0/8, and
// nothing of the user's own.
func fleetFiles(t testing.TB, dir string, s *sshtest.Sshd) {
	t.Helper()
	config := fmt.Sprintf("Host web1 web2 web3\n  HostName 127.0.5.1\n  HostKeyAlias web\nHost *\n  Port %d\n  User %s\n  IdentityFile %s\n  IdentityAgent none\n"+
		"  UserKnownHostsFile %s/known_hosts\n  GlobalKnownHostsFile none\n", s.Port, s.User, s.Key, dir)
	key := sshtest.AuthorizedLine(s.HostKey)
	known := fmt.Sprintf("[127.0.1.*]:%d %sweb %s", s.Port, key, key)
	for name, text := range map[string]string{"ssh_config": config, "known_hosts": known} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRunScripts runs the sessions of testdata/run against a real sshd.
func TestRunScripts(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	other := sshtest.StartSshd(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/run",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		UpdateScripts:       *update,
		Setup: func(env *testscript.Env) error {
			fleetFiles(t, env.WorkDir, s)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("PORT", fmt.Sprint(s.Port))
			env.Setenv("MARK", fmt.Sprintf("endless-mar[k]-%d", os.Getpid())) // a pattern that does not match itself
			env.Setenv("ENDLESS", fmt.Sprintf(`case "$SSH_CONNECTION" in *127.0.1.2\ *) exec yes endless-mark-%d;; *) echo done;; esac`, os.Getpid()))
			env.Setenv("LARGE", `case "$SSH_CONNECTION" in *127.0.1.2\ *) head -c 1000000 /dev/zero | tr "\\0" x;; *) sleep 1; echo done;; esac`)
			env.Setenv("OTHERKEY", strings.TrimSpace(sshtest.AuthorizedLine(other.HostKey)))
			return nil
		},
		Cmds: serverCommands(),
	})
}

// runCommand is sshpace run in a process of its own; dir holds its files.
func runCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	path, err := exec.LookPath("sshpace") // put on PATH by testscript.Main
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"run", "-F", filepath.Join(dir, "ssh_config")}, args...)...)
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+filepath.Join(dir, "state"))
	return cmd
}

// remote is a command that tells its process id and then lives long.
const remote = "echo pid $$; sleep 600; echo never"

// pids reads n lines of remote.
func pids(t *testing.T, r *bufio.Reader, n int) []int {
	t.Helper()
	var out []int
	for range n {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(line, "pid ")
		var pid int
		if _, err := fmt.Sscan(rest, &pid); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if pid < 2 {
			t.Fatalf("%q is not a process id", line)
		}
		out = append(out, pid)
	}
	return out
}

func gone(t *testing.T, all []int) {
	t.Helper()
	for _, pid := range all {
		waittest.Gone(t, pid)
	}
}

// TestRunInterrupted sends SIGINT, SIGTERM, SIGHUP or SIGQUIT, once, and one twice: the commands on
// the hosts end, the summary is written, the exit code says which signal it was.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	for _, test := range []struct {
		signal syscall.Signal
		times  int
		code   int
	}{{syscall.SIGINT, 1, 130}, {syscall.SIGTERM, 1, 143}, {syscall.SIGHUP, 1, 129}, {syscall.SIGQUIT, 1, 131}, {syscall.SIGINT, 2, 130}} {
		t.Run(fmt.Sprintf("%v x%d", test.signal, test.times), func(t *testing.T) {
			if test.times == 1 {
				all, errs := interrupt(t, s, remote, test.signal, test.times, test.code)
				gone(t, all)
				if !strings.Contains(errs, "9 hosts: ") || !strings.Contains(errs, "6 not started") {
					t.Errorf("no summary:\n%s", errs)
				}
				return
			}
			// Whoever is too late with the second signal finds them ended by the first.
			waittest.Until(t, "commands that are left", func() bool {
				all, errs := interrupt(t, s, "trap '' TERM; "+remote, test.signal, test.times, test.code)
				left := !slices.ContainsFunc(all, waittest.Ended)
				if left && !strings.Contains(errs, "may still run there") {
					t.Errorf("not told that commands were left:\n%s", errs)
				}
				for _, pid := range all {
					syscall.Kill(-pid, syscall.SIGKILL)
				}
				return left
			})
		})
	}
}

// interrupt runs a command on nine hosts, three at once, and sends a signal so often. It returns
// the commands that had begun, and what was said.
func interrupt(t *testing.T, s *sshtest.Sshd, command string, signal syscall.Signal, times, code int) (all []int, said string) {
	t.Helper()
	dir := t.TempDir()
	fleetFiles(t, dir, s)
	cmd := runCommand(t, dir, "-w", "127.0.1.[1-9]", "-f", "3", command)
	errs, err := os.Create(filepath.Join(dir, "err"))
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all = pids(t, bufio.NewReader(out), 3)
	answered := func() int {
		text, _ := os.ReadFile(errs.Name())
		said = string(text)
		return strings.Count(said, "sshpace: stopping, and ending the commands that still run; press Ctrl-C again to leave them running\n")
	}
	for range times {
		cmd.Process.Signal(signal)
		waittest.Until(t, "an answer to the first signal", func() bool { return answered() > 0 })
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if n := answered(); n != 1 || !errors.As(err, &exit) || exit.ExitCode() != code {
		t.Errorf("ended with %v, want exit code %d; %d answers\n%s", err, code, n, said)
	}
	return all, said
}

// TestRunClosedOutput is `sshpace run ... | head -1`.
func TestRunClosedOutput(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	dir := t.TempDir()
	fleetFiles(t, dir, s)
	cmd := runCommand(t, dir, "-w", "127.0.1.[1-6]", "-f", "3", "echo pid $$; while sleep 0.05; do echo more; done")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	var all []int
	for len(all) < 3 {
		line, err := r.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, ok := strings.Cut(line, "pid "); ok {
			var pid int
			fmt.Sscan(rest, &pid)
			all = append(all, pid)
		}
	}
	out.Close()
	err = cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 141 || errs.Len() > 0 {
		t.Errorf("ended with %v, stderr:\n%s", err, errs.String())
	}
	gone(t, all)
	list, err := runCommand(t, dir, "--list", "-w", "@last:not-started").CombinedOutput()
	if err != nil || string(list) != "127.0.1.4\n127.0.1.5\n127.0.1.6\n" {
		t.Errorf("not started: %q, %v", list, err)
	}
}

// TestRunKilled: after kill -9 the history knows who had ended and who had not.
func TestRunKilled(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	dir := t.TempDir()
	fleetFiles(t, dir, s)
	cmd := runCommand(t, dir, "-w", "127.0.1.[1-4]", `case "$SSH_CONNECTION" in *127.0.1.[12]\ *) exit 0;; esac; echo pid $$; sleep 600`)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := pids(t, bufio.NewReader(out), 2)
	defer func() {
		for _, pid := range all {
			syscall.Kill(-pid, syscall.SIGKILL)
		}
	}()
	awaitRecord(t, dir, 2)
	cmd.Process.Kill()
	cmd.Wait()
	list, err := runCommand(t, dir, "--list", "-w", "@last:unfinished").CombinedOutput()
	if err != nil || string(list) != "127.0.1.3\n127.0.1.4\n" {
		t.Errorf("unfinished hosts: %q, %v", list, err)
	}
	list, err = runCommand(t, dir, "--history").CombinedOutput()
	if err != nil || !strings.Contains(string(list), "SSH_CONNECTION") {
		t.Errorf("history: %q, %v", list, err)
	}
}

// awaitRecord waits until n results are on the disk.
func awaitRecord(t *testing.T, dir string, n int) {
	t.Helper()
	waittest.Until(t, "results in the record", func() bool {
		files, _ := filepath.Glob(filepath.Join(dir, "state", "sshpace", "runs", "*"))
		return slices.ContainsFunc(files, func(f string) bool {
			data, _ := os.ReadFile(f)
			return strings.Count(string(data), `"result"`) >= n
		})
	})
}

// TestRunFullDisk writes per-host files where no file may grow beyond 32 kB; to the program that is
// a disk without room.
func TestRunFullDisk(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	dir := t.TempDir()
	fleetFiles(t, dir, s)
	cmd := runCommand(t, dir, "-w", "127.0.1.[1-3]", "--dir", filepath.Join(dir, "out"), "head -c 200000 /dev/zero | tr '\\0' x")
	out, err := limited(cmd, "-f 64").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || !bytes.Contains(out, []byte("file too large")) || !bytes.Contains(out, []byte("hint: make room")) {
		t.Errorf("%v\n%.2000s", err, out)
	}
}

// limited is cmd under a limit of the shell's ulimit.
func limited(cmd *exec.Cmd, limit string) *exec.Cmd {
	shell := exec.Command("sh", append([]string{"-c", "ulimit " + limit + `; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)...)
	shell.Env = cmd.Env
	return shell
}

// TestRunFewDescriptors runs 30 hosts with both engines where 64 files may be open.
func TestRunFewDescriptors(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	dir := t.TempDir()
	fleetFiles(t, dir, s)
	for _, engine := range []string{"native", "openssh"} {
		cmd := runCommand(t, dir, "-w", "127.0.1.[1-30]", "--engine", engine, "--dir", filepath.Join(dir, engine), "echo hi")
		if out, err := limited(cmd, "-n 64").CombinedOutput(); err != nil || !bytes.Contains(out, []byte("30 hosts: 30 ok")) {
			t.Errorf("%s: %v\n%s", engine, err, out)
		}
	}
}
