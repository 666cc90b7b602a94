package cli_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"sshpace/internal/ssh/sshtest"
)

// TestExpiredPassword: an account that has to change its password before it runs anything is
// reported as that by all commands. A session with a terminal waits for the new password.
func TestExpiredPassword(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshdWithExpired(t)
	dir := t.TempDir()
	fleetFiles(t, dir, s)
	for line, want := range map[string]string{
		"run -w 127.0.1.1 -- true":                               "Password change required but no TTY available.",
		"copy -w 127.0.1.1 known_hosts :x":                       `its banner says "You are required to change your password immediately`,
		"copy -w 127.0.1.1 --engine openssh known_hosts :x":      `its banner says "You are required to change your password immediately`,
		"fetch -w 127.0.1.1 :/etc/hosts got":                     `its banner says "You are required to change your password immediately`,
		"latency -c 1 --only pty --connect-timeout 2s 127.0.1.1": `it prints "Current password:" and waits`,
		"latency -c 1 --only pipe 127.0.1.1":                     "hint: the account's password has expired: log in and change it with ssh",
		"login --rounds 1 127.0.1.1":                             "hint: the account's password has expired: log in and change it with ssh",
		"doctor --rounds 1 127.0.1.1":                            "runs no commands: its password has",
	} {
		args := strings.Fields(line)
		cmd := exec.Command("sshpace", append([]string{args[0], "-F", "ssh_config"}, args[1:]...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "XDG_STATE_HOME="+dir)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}
