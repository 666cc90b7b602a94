package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// TestShellPrompt: what people type at the prompt, in a terminal.
func TestShellPrompt(t *testing.T) {
	t.Parallel()
	s, dir := sshtest.StartSshd(t), t.TempDir()
	d := dead{port: s.Port, user: s.User, key: s.Key, hostKey: s.HostKey}
	d.write(t, dir)
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config"), append([]byte("Host web4\n  Port 9\n"), config...), 0o600); err != nil {
		t.Fatal(err)
	}
	line := "trap : INT; stty -a >before; " + sshpaceProgram(t) + " shell -F config -w 'web[1-4]'; echo code $?; stty -a | cmp - before && echo restored; exec sleep 1000"
	x := startTmux(t, dir, 80, 24, line)
	x.after("left out from now on: web4")
	x.after("3 of 4 hosts /etc>", "cd /etc; x=1", "Enter")
	x.after("| 1 /etc\n", "echo $x $PWD", "Enter")

	// Ctrl-C ends commands, and clears the line
	x.do("send-keys", "touch "+dir+"/begun; sleep 1000", "Enter")
	waittest.Until(t, "the command", func() bool { _, err := os.Stat(filepath.Join(dir, "begun")); return err == nil })
	x.after("=: interrupted while the command was running", "C-c")
	x.after("3 of 4 hosts /etc>")
	x.after("| whole\n", "echo not", "C-c", "echo whole", "Enter")

	// completion, and lines of before
	x.after("1 of 4 hosts /etc>", ":on", "Tab", "web2", "Tab", "Enter")
	x.after("3 of 4 hosts in 2 directories>", "cd /tmp", "Enter", ":only all", "Enter")
	x.after("web2 (1): /tmp\nweb4 (1): left out: ", ":hosts", "Enter")
	x.after("3 of 4 hosts /etc> ", "Up", "Up", "Up", "C-u", "cd /etc", "Enter")
	x.after("3 of 4 hosts /etc> cd /etc", "Up")
	x.after("| typed ahead\n", "C-u", "sleep 1", "Enter", "echo typed ahead", "Enter")
	x.after("code 0\n", " echo a secret", "Enter", "C-d")
	x.after("restored")
	typed, err := os.ReadFile(filepath.Join(dir, ".local/state/sshpace/shell-lines"))
	if err != nil || strings.Contains(string(typed), "secret") || !strings.HasPrefix(string(typed), "cd /etc; x=1\necho $x $PWD\n") {
		t.Errorf("%v, %q", err, typed)
	}
	if info, err := os.Stat(filepath.Join(dir, ".local/state/sshpace/shell-lines")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", err, info.Mode())
	}
}

// TestShellEnds: a signal at the prompt leaves the terminal as it was.
func TestShellEnds(t *testing.T) {
	t.Parallel()
	s, dir := sshtest.StartSshd(t), t.TempDir()
	d := dead{port: s.Port, user: s.User, key: s.Key, hostKey: s.HostKey}
	d.write(t, dir)
	line := "stty -a >before; sh -c 'echo $$ >pid; exec " + sshpaceProgram(t) + " shell -F config -w web[1-2] --no-record'; echo code $?; stty -a | cmp - before && echo restored; exec sleep 1000"
	x := startTmux(t, dir, 80, 24, line)
	x.after("2 hosts /")
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("kill", strings.TrimSpace(string(pid))).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if screen := x.after("restored"); !strings.Contains(screen, "code 143") {
		t.Error(screen)
	}
	if _, err := os.Stat(filepath.Join(dir, ".local/state/sshpace/shell-lines")); err == nil {
		t.Error("lines are kept with --no-record")
	}
}
