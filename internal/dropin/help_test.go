package dropin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/sshtest"
)

// lab is two private servers: commands on the flagged one start in a directory with mpssh-ok.flag.
// Nine names lead to them, as the rules of mpssh.py's own tests ask.
type lab struct {
	user           string
	flagged, plain *sshtest.Sshd
	conf           string // ssh_config for all names
	silent         int    // port that never answers
}

// silentName leads to a port that never answers.
const silentName = "timeout.mpssh"

// silentPort listens without ever accepting, with its queue full: as behind a firewall that drops,
// a connect gets no answer.
func silentPort(t *testing.T) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	loopback := &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if err := errors.Join(syscall.Bind(fd, loopback), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	addr, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := addr.(*syscall.SockaddrInet4).Port
	for {
		c, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), 200*time.Millisecond)
		if err != nil { // full
			return port
		}
		t.Cleanup(func() { c.Close() })
	}
}

var labNames = []string{"test1.mpssh", "test2.mpssh", "test3.mpssh", "test4.mpssh", "test50.mpssh", "test6.mpssh", "test7.mpssh", "test8.mpssh", "test9.mpssh"}

func isFlagged(name string) bool {
	return slices.Contains([]string{labNames[0], labNames[3], labNames[6]}, name)
}

func startLab(t *testing.T) *lab {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mpssh-ok.flag"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	l := &lab{user: userName(t)}
	l.flagged = sshtest.StartSshd(t, fmt.Sprintf(`ForceCommand cd %s && exec bash -c "$SSH_ORIGINAL_COMMAND"`, dir))
	l.plain = sshtest.StartSshd(t, `ForceCommand exec bash -c "$SSH_ORIGINAL_COMMAND"`)
	l.conf = filepath.Join(dir, "ssh_config")
	known := filepath.Join(dir, "known_hosts")
	var conf, keys strings.Builder
	for _, name := range labNames {
		s := l.server(name)
		fmt.Fprintf(&conf, "Host %s\n HostName 127.0.0.1\n Port %d\n IdentityFile %s\n HostKeyAlias %s\n", name, s.Port, s.Key, name)
		fmt.Fprintf(&keys, "%s %s", name, sshtest.AuthorizedLine(s.HostKey))
	}
	l.silent = silentPort(t)
	fmt.Fprintf(&conf, "Host %s\n HostName 127.0.0.1\n Port %d\n", silentName, l.silent)
	fmt.Fprintf(&conf, "Host *\n IdentityAgent none\n IdentitiesOnly yes\n UserKnownHostsFile %s\n GlobalKnownHostsFile /dev/null\n", known)
	for path, text := range map[string]string{l.conf: conf.String(), known: keys.String()} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func (l *lab) server(name string) *sshtest.Sshd {
	if isFlagged(name) {
		return l.flagged
	}
	return l.plain
}

func userName(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("id", "-un").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// engines are the two that a mode can run on; their output must be the same.
func (l *lab) engines() map[string]func([]string, []host.Host) (fleet.Executor, func() error, error) {
	return map[string]func([]string, []host.Host) (fleet.Executor, func() error, error){
		"openssh": func(args []string, _ []host.Host) (fleet.Executor, func() error, error) {
			return forkssh.New(forkssh.Options{Args: append([]string{"-F", l.conf}, args...)}), func() error { return nil }, nil
		},
		"native": func([]string, []host.Host) (fleet.Executor, func() error, error) {
			e := dial.New(l, dial.Options{})
			return e, e.Close, nil
		},
	}
}

// Target resolves the names as the ssh_config above does.
func (l *lab) Target(_ context.Context, h host.Host) (*dial.Target, error) {
	t := &dial.Target{HostName: "127.0.0.1", User: h.User, ConnectTimeout: 2 * time.Minute}
	if h.Name == silentName {
		t.Port, t.HostKeys, t.ConnectTimeout = l.silent, fixedKey{l.plain.HostKey}, time.Second
		return t, nil
	}
	if !slices.Contains(labNames, h.Name) {
		t.HostName, t.Port, t.HostKeys = h.Name, int(h.Port), fixedKey{l.plain.HostKey}
		return t, nil
	}
	s := l.server(h.Name)
	t.Port, t.HostKeys, t.Identity = s.Port, fixedKey{s.HostKey}, dial.Identity{Files: []string{s.Key}}
	return t, nil
}

type fixedKey struct{ key ssh.PublicKey }

func (k fixedKey) Algorithms(context.Context, string, int, []string) ([]string, error) {
	return []string{k.key.Type()}, nil
}

func (k fixedKey) Check(_ context.Context, _ string, _ int, _ net.Addr, key ssh.PublicKey) error {
	if !bytes.Equal(key.Marshal(), k.key.Marshal()) {
		return &dial.Error{Class: fleet.HostKeyChanged, Text: "changed"}
	}
	return nil
}

// offline is an Env whose engine must not be needed.
func offline(t *testing.T, stdout, stderr *bytes.Buffer) Env {
	return Env{
		Stdin: strings.NewReader(""), Stdout: stdout, Stderr: stderr, User: "me", Home: t.TempDir(),
		Engine: func([]string, []host.Host) (fleet.Executor, func() error, error) {
			return nil, nil, fmt.Errorf("the test wants no engine")
		},
	}
}

func writeFile(t *testing.T, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// sorted sorts the lines of a text bytewise: hosts end in any order.
func sorted(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}
