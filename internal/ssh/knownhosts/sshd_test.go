package knownhosts

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sshd is a private server on loopback with the host keys edKey(1) and rsaKey.
type sshd struct {
	dir  string
	port int
}

// startSSHD runs the real sshd until the test ends. More lines of sshd_config may
// each name a file in its directory.
func startSSHD(t *testing.T, more ...string) sshd {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ed25519", "hostkey_ed"}, {"ecdsa", "hostkey_ec"}, {"ed25519", "user"}} {
		if out, err := keygen("-q", "-t", args[0], "-N", "", "-f", filepath.Join(dir, args[1])); err != nil {
			t.Fatal(err, out)
		}
	}
	if os.Geteuid() == 0 { // the privilege separation directory of sshd.c; as a user it is not needed
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := sshd{dir: dir, port: freePort(t)}
	config := fmt.Sprintf("ListenAddress 127.0.0.1:%d\nHostKey %[2]s/hostkey_ed\nHostKey %[2]s/hostkey_ec\nAuthorizedKeysFile %[2]s/user.pub\n"+
		"PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 100\n", s.port, dir)
	for _, line := range more {
		name, file, _ := strings.Cut(line, " ")
		config += name + " " + filepath.Join(dir, file) + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "sshd_config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(log); lines.Scan(); {
			if strings.Contains(lines.Text(), "Server listening") {
				close(ready)
			}
		}
	}()
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	select {
	case <-ready:
	case <-time.After(20 * time.Second):
		t.Fatal("sshd does not listen")
	}
	return s
}

// freePort is a port that nobody uses at the moment.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// hostKey is the public host key of one type ("ed" or "ec") as it stands in a line.
func (s sshd) hostKey(t *testing.T, kind string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.dir, "hostkey_"+kind+".pub"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	return fields[0] + " " + fields[1]
}

// ssh runs the real ssh with strict host keys and these options, to address.
func (s sshd) ssh(t *testing.T, address string, options ...string) (output string, exitCode int) {
	t.Helper()
	return s.run(t, "none", address, append(options, "GlobalKnownHostsFile=none")...)
}

// sshConfig runs the real ssh with strict host keys and a configuration file.
func (s sshd) sshConfig(t *testing.T, config, address string) (output string, exitCode int) {
	t.Helper()
	return s.run(t, config, address, "GlobalKnownHostsFile=none")
}

func (s sshd) run(t *testing.T, config, address string, options ...string) (output string, exitCode int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	args := []string{"-F", config, "-p", fmt.Sprint(s.port), "-i", filepath.Join(s.dir, "user"), "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
		"-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes"}
	for _, option := range options {
		args = append(args, "-o", option)
	}
	out, err := exec.CommandContext(ctx, "ssh", append(args, address, "true")...).CombinedOutput()
	return string(out), exitOf(t, err)
}
