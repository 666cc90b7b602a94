// Package daemon is an sshd of a check's own on loopback. It shares no code with what it checks.
package daemon

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Sshd is one that runs.
type Sshd struct {
	Port string
	Key  string // file of the private key that may log in
	cmd  *exec.Cmd
}

// Start makes keys in a directory and starts an sshd by argv with them and with these lines of
// configuration, at an address that reaches 127.0.0.1.
func Start(argv []string, dir, address string, lines ...string) (*Sshd, error) {
	l, err := net.Listen("tcp4", address+":0")
	if err != nil {
		return nil, err
	}
	s := &Sshd{Port: strconv.Itoa(l.Addr().(*net.TCPAddr).Port), Key: filepath.Join(dir, "user")}
	l.Close()
	for _, name := range []string{"host", "user"} {
		if err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).Run(); err != nil {
			return nil, fmt.Errorf("ssh-keygen: %w", err)
		}
	}
	lines = append(lines, "Port "+s.Port, "ListenAddress "+address, "HostKey "+filepath.Join(dir, "host"), "AuthorizedKeysFile "+s.Key+".pub",
		"StrictModes no", "PidFile none", "UsePAM no", "UseDNS no")
	config := filepath.Join(dir, "sshd_config")
	if err := os.WriteFile(config, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return nil, err
	}
	s.cmd = exec.Command(argv[0], append(argv[1:], "-D", "-e", "-f", config)...)
	var said bytes.Buffer
	s.cmd.Stderr, s.cmd.WaitDelay = &said, time.Second // sessions may outlive it
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		c, err := net.Dial("tcp4", "127.0.0.1:"+s.Port)
		if err == nil {
			return s, c.Close()
		}
		if time.Now().After(end) {
			s.Close()
			return nil, fmt.Errorf("sshd does not listen: %w: %s", err, said.String())
		}
	}
}

// Pid is its process ID.
func (s *Sshd) Pid() int { return s.cmd.Process.Pid }

// Close ends it.
func (s *Sshd) Close() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}
