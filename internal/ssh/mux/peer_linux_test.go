package mux_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/ssh/agent"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
)

// TestOtherUser: another user can neither find nor replace the socket of a master. A master whose
// socket everybody can reach answers its own user alone.
func TestOtherUser(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	s, _ := serveSshd(t)
	other := func(argv ...string) string {
		out, _ := exec.Command("setpriv", append([]string{"--reuid=65534", "--regid=65534", "--clear-groups"}, argv...)...).CombinedOutput()
		return string(out)
	}
	check := []string{"ssh", "-F", "none", "-S", s.path, "-O", "check", "x"}
	if out := other(check...); !strings.Contains(out, "Permission denied") {
		t.Errorf("another user reaches the socket: %s", out)
	}
	for _, argv := range [][]string{{"ln", "-sf", "/dev/null", s.path}, {"mv", s.path, s.path + "x"}, {"touch", s.path + "x"}, {"rm", "-f", s.path}} {
		if out := other(argv...); !strings.Contains(out, "Permission denied") {
			t.Errorf("another user may %q: %s", argv, out)
		}
	}
	for path, mode := range map[string]os.FileMode{s.path: 0o666, filepath.Dir(s.path): 0o755} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if out := other(check...); out == "" || strings.Contains(out, "running") {
		t.Errorf("the master answers another user: %s", out)
	}
	if out, exit := s.says(t, "-O", "check", "x"); exit != 0 {
		t.Errorf("it does not answer its own: %s", out)
	}
}

// TestNoAgentBeyond: over a master a host gets neither the agent nor the display of the user, even
// if ssh asks for them.
func TestNoAgentBeyond(t *testing.T) {
	s, _ := serveSshd(t)
	socket := filepath.Join(filepath.Dir(s.path), "agent")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	sshtest.Answer(t, l, func(conn net.Conn) {
		asked.Add(1)
		_ = agent.ServeAgent(agent.NewKeyring(), conn)
	})
	cmd := s.ssh("-A", "-X", "x", "echo ${SSH_AUTH_SOCK-none} ${DISPLAY-none}; ssh-add -l")
	cmd.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket, "DISPLAY=:77")
	if out, err := cmd.CombinedOutput(); !strings.Contains(string(out), "none none\n") || !strings.Contains(string(out), "not open a connection") || asked.Load() > 0 {
		t.Errorf("%v: %s; the agent was asked %d times", err, out, asked.Load())
	}
}
