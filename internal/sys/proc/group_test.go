package proc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/sys/proc"
)

// TestRunLeavesNothing: a program that ends, or is ended, with children that go on and ignore
// SIGTERM.
func TestRunLeavesNothing(t *testing.T) {
	for _, test := range []struct{ name, then string }{{"ends by itself", "exit 3"}, {"is ended", "sleep 600"}} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", `(trap "" TERM HUP; sleep 600 & wait; sleep 600) >/dev/null 2>&1 & echo $!; `+test.then)
			var out strings.Builder
			cmd.Stdout = writer(func(p []byte) (int, error) {
				if test.then != "exit 3" {
					defer cancel()
				}
				return out.Write(p)
			})
			err := proc.Run(cmd)
			if err == nil {
				t.Error("no error of a program that failed")
			}
			var child int
			fmt.Sscan(out.String(), &child)
			waittest.Gone(t, child)
		})
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// TestEndGroup gives those that end when asked the time to do so.
func TestEndGroup(t *testing.T) {
	cmd := exec.Command("sh", "-c", `(trap 'echo bye; exit' TERM; echo ready; sleep 600 & wait) & exit 0`)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd.Stdout = w
	proc.Lead(cmd)
	if err := cmd.Run(); err != nil { // the leader has ended; its child holds stdout
		t.Fatal(err)
	}
	w.Close()
	out := bufio.NewReader(r)
	if line, err := out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("said %q, %v", line, err)
	}
	proc.EndGroup(cmd.Process.Pid, time.Minute)
	if rest, err := io.ReadAll(out); string(rest) != "bye\n" || err != nil {
		t.Errorf("said %q, %v", rest, err)
	}
}

// TestRunDiesWithUs: a program that is waited for is gone when our process is killed.
func TestRunDiesWithUs(t *testing.T) {
	if os.Getenv("SSHPACE_TEST_RUN") != "" {
		cmd := exec.Command("sh", "-c", "echo $$; exec sleep 600")
		cmd.Stdout = os.Stdout
		_ = proc.Run(cmd)
		return
	}
	if runtime.GOOS != "linux" {
		return // promised there alone
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	cmd := exec.Command(exe, "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), "SSHPACE_TEST_RUN=1")
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	var child int
	if _, err := fmt.Fscan(r, &child); err != nil {
		t.Error(err)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	waittest.Gone(t, child)
}
