package session

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
)

// TestKillScript runs the script below parents of our own making, with a sibling that leads a
// process group: it must end where the parent is called sshd, and live where it is not.
func TestKillScript(t *testing.T) {
	for _, test := range []struct {
		name string
		ends bool
	}{{"sshd", true}, {"sshd-session", true}, {"init", false}, {"systemd", false}} {
		t.Run(test.name, func(t *testing.T) {
			shell := filepath.Join(t.TempDir(), test.name)
			if err := os.Symlink("/bin/sh", shell); err != nil {
				t.Fatal(err)
			}
			parent := exec.Command(shell, "-c", `setsid sh -c 'echo $$; exec sleep 600' & read x; sh -c "$1"; echo done; read x`, "sh", killScript)
			parent.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			in, out := waittest.Piped(t, parent)
			defer parent.Wait()
			defer in.Close()
			lines := bufio.NewReader(out)
			pid := readInt(t, lines)
			defer syscall.Kill(pid, syscall.SIGKILL)
			if _, err := io.WriteString(in, "go on\n"); err != nil {
				t.Fatal(err)
			}
			if word, err := lines.ReadString('\n'); err != nil || word != "done\n" {
				t.Fatalf("%q, %v", word, err)
			}
			if test.ends {
				waittest.Gone(t, pid)
			} else if time.Sleep(300 * time.Millisecond); waittest.Ended(pid) {
				t.Errorf("below a parent called %s the sibling was ended", test.name)
			}
		})
	}
}

// TestSignalsLack: a second session is for servers that cannot signal, never where a refusal means
// a forced command.
func TestSignalsLack(t *testing.T) {
	for _, test := range []struct {
		version, user string
		want          bool
	}{
		{"SSH-2.0-OpenSSH_9.2p1 Debian-2", "ann", false},
		{"SSH-2.0-OpenSSH_10.2", "ann", false},
		{"SSH-2.0-OpenSSH_7.9p1", "ann", false},
		{"SSH-2.0-OpenSSH_for_Windows_9.5", "ann", false},
		{"SSH-2.0-OpenSSH_9.2p1", "root", true},
		{"SSH-2.0-OpenSSH_7.4", "ann", true},
		{"SSH-2.0-OpenSSH_6.6.1p1", "ann", true},
		{"SSH-2.0-dropbear_2022.83", "ann", true},
		{"SSH-2.0-dropbear_2025.88", "root", false},
		{"SSH-2.0-dropbear", "ann", false},
		{"SSH-2.0-Cisco-1.25", "root", false},
	} {
		if got := signalsLack(test.version, test.user); got != test.want {
			t.Errorf("%s, %s: %v, want %v", test.version, test.user, got, test.want)
		}
	}
}

func readInt(t *testing.T, r *bufio.Reader) int {
	t.Helper()
	line, err := r.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || n < 2 {
		t.Fatalf("%q is not a process id", line)
	}
	return n
}
