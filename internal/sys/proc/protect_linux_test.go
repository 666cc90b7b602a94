package proc_test

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/waittest"
	"sshpace/internal/sys/proc"
)

// TestProtect: other processes of the user cannot read the memory, a core file has none of it, and
// where no limit counts it is locked: pages that are in use, and no others. Where one counts,
// memory can still be allocated.
func TestProtect(t *testing.T) {
	if os.Getenv("PROTECTED") != "" {
		protected(t)
		return
	}
	nobody := []string{"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"}
	for name, by := range map[string][]string{
		"a limit":     append(nobody, "--inh-caps=-all", "--bounding-set=-all"),
		"its right":   append(nobody, "--inh-caps=+ipc_lock", "--ambient-caps=+ipc_lock"),
		"root's user": nil,
	} {
		if !waittest.AsRoot(t) {
			return
		}
		exe, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		program := copied(t, exe)
		argv := append(by, program, "-test.run=^TestProtect$")
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Env, cmd.Stderr, cmd.Dir = append(os.Environ(), "PROTECTED=1"), os.Stderr, "/"
		in, out := waittest.Piped(t, cmd)
		said, _ := io.ReadAll(io.LimitReader(out, 6))
		status, err := os.ReadFile("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status")
		if err != nil || string(said) != "ready\n" {
			t.Errorf("%s: said %q, %v", name, said, err)
		}
		locked, resident := kib(status, "VmLck:"), kib(status, "VmRSS:")
		if (name == "a limit") != (locked == 0) || resident > 40<<10 {
			t.Errorf("%s: %d KiB locked, %d resident", name, locked, resident)
		}
		if by != nil {
			peek := exec.Command(nobody[0], append(nobody[1:], "cat", "/proc/"+strconv.Itoa(cmd.Process.Pid)+"/maps")...)
			if seen, err := peek.Output(); err == nil {
				t.Errorf("%s: its user sees %d bytes of its maps", name, len(seen))
			}
		}
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// protected is the process that the test looks at, until its input ends.
func protected(t *testing.T) {
	if _, err := proc.Protect(); err != nil {
		t.Fatal(err)
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil || core.Max != 0 {
		t.Errorf("core files of %d bytes, %v", core.Max, err)
	}
	held := make([][]byte, 20)
	for i := range held {
		held[i] = bytes.Repeat([]byte{1}, 1<<20)
	}
	if _, err := syscall.Write(1, []byte("ready\n")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	if len(held[19]) == 0 {
		t.Error("nothing is held")
	}
}

// kib returns a number of kibibytes in /proc/PID/status.
func kib(status []byte, name string) int {
	_, rest, _ := strings.Cut(string(status), name)
	if fields := strings.Fields(rest); len(fields) > 0 {
		n, _ := strconv.Atoi(fields[0])
		return n
	}
	return 0
}

// copied copies a program to where every account can run it.
func copied(t *testing.T, program string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	data, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/test", data, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir + "/test"
}
