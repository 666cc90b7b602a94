package sshtest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"sshpace/internal/base/waittest"
)

// Sshd is a private instance of the installed sshd.
type Sshd struct {
	Dir     string // its files, 0700
	Port    int
	User    string // who may log in: the one who runs the test
	HostKey ssh.PublicKey
	Key     string // a private key file that may log in
	cmd     *exec.Cmd
	log     *logBuffer
}

// logBuffer is what sshd says; it may be read while sshd runs.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// Log is what sshd has said so far.
func (s *Sshd) Log() string { return s.log.String() }

// StartSshd runs sshd on all loopback addresses, until the test ends. extra are
// lines of sshd_config, which come first and so win: "KexAlgorithms -none" leaves sshd the
// key exchanges that it has by itself, where others do with the quick ones.
func StartSshd(t testing.TB, extra ...string) *Sshd {
	t.Helper()
	return StartSshdUnder(t, nil, extra...)
}

// StartSshdUnder is StartSshd by a program that is given sshd's whole command line.
func StartSshdUnder(t testing.TB, program []string, extra ...string) *Sshd {
	t.Helper()
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return startSshd(t, me.Username, program, extra)
}

// Processes is how many children sshd has: those that serve connections, and all that
// these left behind where sshd was made a reaper of orphans (prctl(2)).
func (s *Sshd) Processes(t testing.TB) int {
	t.Helper()
	pid := s.cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(bytes.Fields(children))
}

// StartSshdForOther is StartSshd with a login that is not root's: nobody's
// where the tests run as root, with a shell by a password file that only this
// sshd sees.
func StartSshdForOther(t testing.TB, extra ...string) *Sshd {
	t.Helper()
	if os.Getuid() != 0 {
		return StartSshd(t, extra...)
	}
	return StartSshdWithShell(t, "/bin/sh", extra...)
}

// StartSshdWithShell is StartSshdForOther with a login shell. Where the tests
// do not run as root, their own login shell starts that one.
func StartSshdWithShell(t testing.TB, shell string, extra ...string) *Sshd {
	t.Helper()
	if os.Getuid() != 0 {
		return StartSshd(t, append(extra, `ForceCommand exec `+shell+` -c "$SSH_ORIGINAL_COMMAND"`)...)
	}
	passwd := filepath.Join(t.TempDir(), "passwd")
	text, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	lines := regexp.MustCompile(`(?m)^nobody:.*:`).ReplaceAll(text, []byte("nobody:*:65534:65534::/:"+shell+"\n#"))
	write(t, passwd, string(lines))
	if err := os.Chmod(passwd, 0o644); err != nil {
		t.Fatal(err)
	}
	return startSshd(t, "nobody", []string{"unshare", "-m", "sh", "-c", `mount --bind "$0" /etc/passwd && exec "$@"`, passwd}, extra)
}

// StartSshdWithSudo is StartSshdForOther with sudo: nobody has a password, and
// rules are lines of sudoers(5). It needs root.
func StartSshdWithSudo(t testing.TB, password, rules string, extra ...string) *Sshd {
	t.Helper()
	hash, err := exec.Command("openssl", "passwd", "-6", password).Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	passwd, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	nobody := regexp.MustCompile(`(?m)^nobody:.*:`)
	for name, text := range map[string]string{
		"passwd":  string(nobody.ReplaceAll(passwd, []byte("nobody:x:65534:65534::/:/bin/sh\n#"))),
		"shadow":  "root:*:19000:0:99999:7:::\nnobody:" + strings.TrimSpace(string(hash)) + ":19000:0:99999:7:::\n",
		"sudoers": rules + "\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	if err := os.Chmod(filepath.Join(dir, "passwd"), 0o644); err != nil {
		t.Fatal(err)
	}
	script := `for f in passwd shadow sudoers; do mount --bind "$0/$f" "/etc/$f" || exit; done; exec "$@"`
	return startSshd(t, "nobody", []string{"unshare", "-m", "sh", "-c", script, dir}, extra)
}

// startSshd runs sshd, before which argv may put a program that starts it.
func startSshd(t testing.TB, login string, argv, extra []string) *Sshd {
	t.Helper()
	const binary = "/usr/sbin/sshd"
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("these tests need OpenSSH's server: %v", err)
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	port, err := FreePort()
	if err != nil {
		t.Fatal(err)
	}
	s := &Sshd{Dir: dir, Port: port, User: login, log: &logBuffer{}}
	hostKey, hostPub := WriteKey(t, dir, "host_key", "")
	s.HostKey = hostPub
	key, pub := WriteKey(t, dir, "user_key", "")
	s.Key = key
	write(t, filepath.Join(dir, "authorized_keys"), AuthorizedLine(pub))
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	lines := append(extra,
		fmt.Sprintf("Port %d", s.Port),
		"ListenAddress 0.0.0.0",
		"HostKey "+hostKey,
		"AuthorizedKeysFile "+filepath.Join(dir, "authorized_keys"),
		"PidFile none", "UsePAM no", "StrictModes no", "PasswordAuthentication no",
		"KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password",
		"LogLevel ERROR", "UseDNS no", "SetEnv HOME="+home,
		// What resists quantum computers takes OpenSSH up to 70 ms of CPU time, more than the rest of a login.
		"KexAlgorithms -sntrup*,mlkem*",
	)
	if !strings.Contains(strings.Join(extra, "\n"), "Subsystem") {
		lines = append(lines, "Subsystem sftp internal-sftp")
	}
	if !strings.Contains(strings.Join(extra, "\n"), "MaxStartups") { // here the last one would win
		lines = append(lines, "MaxStartups 500:30:1000")
	}
	if login == "nobody" { // who cannot read our folder
		lines = append(lines, "AuthorizedKeysCommandUser root", "AuthorizedKeysCommand /bin/echo "+strings.TrimSpace(AuthorizedLine(pub)))
	}
	conf := filepath.Join(dir, "sshd_config")
	write(t, conf, strings.Join(lines, "\n")+"\n")
	os.MkdirAll("/run/sshd", 0o755) // privilege separation; only root needs and can make it
	argv = append(argv, binary, "-D", "-e", "-f", conf)
	s.cmd = exec.Command(argv[0], argv[1:]...)
	s.cmd.Stderr = s.log
	s.cmd.WaitDelay = 100 * time.Millisecond // what it started may live on and hold its standard error
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.await(t)
	return s
}

// await waits until the port answers, and has the test end the server.
func (s *Sshd) await(t testing.TB) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- s.cmd.Wait() }()
	t.Cleanup(func() { s.cmd.Process.Kill(); <-ended })
	there := Listens("tcp", fmt.Sprintf("127.0.0.1:%d", s.Port))
	if !waittest.Comes(func() bool { return len(ended) > 0 || there() }) || len(ended) > 0 {
		t.Fatalf("sshd does not listen: %s", s.Log())
	}
}

// Listens tells whether somebody listens at an address.
func Listens(network, address string) func() bool {
	return func() bool {
		c, err := net.Dial(network, address)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
}

// FreePort is a port that nobody listens on, and that is given to no other test as long as
// this process lives. It lies below those that the kernel gives to connections and to
// listeners (ip_local_port_range), which could be taken before sshd has it.
func FreePort() (int, error) {
	for range 100 {
		port := 12000 + rand.IntN(20000)
		if reserve(fmt.Sprintf("@sshpace-test-port-%d", port)) != nil {
			continue
		}
		if l, err := net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, errors.New("no port of a hundred is free")
}

// reserve takes a name in the abstract namespace (unix(7)), which only one process can have
// and has until it ends.
func reserve(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		if err = unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
			unix.Close(fd)
		}
	}
	return err
}
