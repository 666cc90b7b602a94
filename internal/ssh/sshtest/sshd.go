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
	"strconv"
	"strings"
	"sync"
	"syscall"
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

// logBuffer is sshd's log; it may be read while sshd runs.
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

// Log returns sshd's log so far.
func (s *Sshd) Log() string { return s.log.String() }

// StartSshd runs sshd on all loopback addresses, until the test ends. extra are lines of
// sshd_config, which come first and so win: "KexAlgorithms -none" leaves sshd the key exchanges
// that it has by itself, where others do with the quick ones.
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

// Processes is how many children sshd has: those that serve connections, and all that these left
// behind where sshd was made a reaper of orphans (prctl(2)).
func (s *Sshd) Processes(t testing.TB) int {
	t.Helper()
	children, err := children(s.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return len(children)
}

func children(pid int) (pids []int, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for _, child := range bytes.Fields(text) {
		if pid, err = strconv.Atoi(string(child)); err != nil {
			break
		}
		pids = append(pids, pid)
	}
	return pids, err
}

// Signal sends a signal to all processes that serve connections, and to what they have started.
// sshd itself goes on.
func (s *Sshd) Signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	for left := []int{s.cmd.Process.Pid}; len(left) > 0; left = left[1:] {
		below, _ := children(left[0]) // some end meanwhile
		for _, pid := range below {
			_ = syscall.Kill(pid, signal)
		}
		left = append(left, below...)
	}
}

// StartSshdForOther is StartSshd with a login that is not root's: nobody's where the tests run as
// root, with a shell by a password file that only this sshd sees.
func StartSshdForOther(t testing.TB, extra ...string) *Sshd {
	t.Helper()
	if os.Getuid() != 0 {
		return StartSshd(t, extra...)
	}
	return StartSshdWithShell(t, "/bin/sh", extra...)
}

// StartSshdWithShell is StartSshdForOther with a login shell. Where the tests do not run as root,
// their own login shell starts that one.
func StartSshdWithShell(t testing.TB, shell string, extra ...string) *Sshd {
	t.Helper()
	if os.Getuid() != 0 {
		return StartSshd(t, append(extra, `ForceCommand exec `+shell+` -c "$SSH_ORIGINAL_COMMAND"`)...)
	}
	return startSeeing(t, map[string]string{"passwd": nobody(t, "*", "/", shell)}, extra)
}

// StartSshdWithHome is StartSshdWithShell with a home directory, which is made nobody's, and which
// commands and SFTP begin in. It needs root.
func StartSshdWithHome(t testing.TB, home, shell string, extra ...string) *Sshd {
	t.Helper()
	return startSeeing(t, map[string]string{"passwd": nobody(t, "*", home, shell)}, append(extra, "SetEnv HOME="+home))
}

// StartSshdInChroot is StartSshdForOther with a home directory that is all that SFTP shows, and
// that begins in the directory work there. It needs root.
func StartSshdInChroot(t testing.TB, home string) *Sshd {
	t.Helper()
	const at = "/mnt" // sshd wants all directories above it to be root's alone
	return startSeeing(t, map[string]string{"passwd": nobody(t, "*", "/", "/bin/sh")},
		[]string{"ChrootDirectory " + at, "Subsystem sftp internal-sftp -d /work"}, "mount --bind '"+home+"' "+at)
}

// StartMySecureShell is sshd with MySecureShell for its login shell, which gives SFTP below a home
// directory and nothing else. It needs root.
func StartMySecureShell(t testing.TB, home string) *Sshd {
	t.Helper()
	files := map[string]string{
		"passwd":          nobody(t, "*", home, "/usr/bin/mysecureshell"),
		"ssh/sftp_config": "<Default>\n\tHome " + home + "\n\tStayAtHome true\n\tVirtualChroot true\n\tLogFile /dev/null\n</Default>\n",
	}
	return startSeeing(t, files, []string{"Subsystem sftp /usr/lib/openssh/sftp-server"}) // which the shell takes for itself
}

// StartSshdWithSudo is StartSshdForOther with sudo: nobody has a password, and rules are lines of
// sudoers(5). It needs root.
func StartSshdWithSudo(t testing.TB, password, rules string, extra ...string) *Sshd {
	t.Helper()
	hash, err := exec.Command("openssl", "passwd", "-6", password).Output()
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		"passwd":  nobody(t, "x", "/", "/bin/sh"),
		"shadow":  "root:*:19000:0:99999:7:::\nnobody:" + strings.TrimSpace(string(hash)) + ":19000:0:99999:7:::\n",
		"sudoers": rules + "\n",
	}
	return startSeeing(t, files, extra)
}

// StartSshdWithExpired is StartSshdForOther with an account whose password has expired. It needs
// root.
func StartSshdWithExpired(t testing.TB, extra ...string) *Sshd {
	t.Helper()
	files := map[string]string{
		"passwd": nobody(t, "x", "/", "/bin/sh"),
		"shadow": "root:*:19000:0:99999:7:::\nnobody:*:0:0:99999:7:::\n",
	}
	return startSeeing(t, files, append(extra, "UsePAM yes"))
}

// StartSshdThatBoots is StartSshdForOther of a host that takes nobody's login as long as a file is
// there, whose text it sends (pam_nologin(8)); sshd starts after commands that change what it sees.
// It needs root.
func StartSshdThatBoots(t testing.TB, nologin string, commands ...string) *Sshd {
	t.Helper()
	files := map[string]string{
		"passwd": nobody(t, "x", "/", "/bin/sh"),
		"pam.d/sshd": "auth required pam_permit.so\naccount requisite pam_nologin.so file=" + nologin + "\naccount required pam_permit.so\n" +
			"session required pam_permit.so\n",
	}
	return startSeeing(t, files, []string{"UsePAM yes"}, commands...)
}

// nobody is the password file with an account of nobody that can be logged in to. mark stands where
// its password did.
func nobody(t testing.TB, mark, home, shell string) string {
	t.Helper()
	text, err := os.ReadFile("/etc/passwd")
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Join([]string{"nobody", mark, "65534", "65534", "", home, shell}, ":") + "\n#"
	return regexp.MustCompile(`(?m)^nobody:.*:`).ReplaceAllString(string(text), line)
}

// startSeeing runs sshd for nobody with files below /etc and shared memory that only it sees, and
// after other commands that change what it sees.
func startSeeing(t testing.TB, files map[string]string, extra []string, commands ...string) *Sshd {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.Base(name))
		write(t, file, text)
		if name == "passwd" || name == "ssh/sftp_config" { // which nobody reads, too
			if err := os.Chmod(file, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		commands = append(commands, "mount --bind '"+file+"' /etc/"+name)
	}
	commands = append(commands, `exec "$0" "$@"`)
	return startSshd(t, "nobody", []string{"unshare", "--mount", "--ipc", "sh", "-c", strings.Join(commands, " && ")}, extra)
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
	keys := filepath.Join(dir, "authorized_keys")
	if login == "nobody" { // who cannot read our directory
		keys = filepath.Join(OpenDir(t, 0o755), "authorized_keys")
	}
	write(t, keys, AuthorizedLine(pub))
	if err := os.Chmod(keys, 0o644); err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	lines := append(extra,
		fmt.Sprintf("Port %d", s.Port),
		"ListenAddress 0.0.0.0",
		"HostKey "+hostKey,
		"AuthorizedKeysFile "+keys,
		"PidFile none", "UsePAM no", "StrictModes no", "PasswordAuthentication no",
		"KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password",
		"LogLevel ERROR", "UseDNS no", "SetEnv HOME="+home,
		// What resists quantum computers takes OpenSSH up to 70 ms of CPU time, more than the rest
		// of a login.
		"KexAlgorithms -sntrup*,mlkem*",
	)
	if !strings.Contains(strings.Join(extra, "\n"), "Subsystem") {
		lines = append(lines, "Subsystem sftp internal-sftp")
	}
	if !strings.Contains(strings.Join(extra, "\n"), "MaxStartups") { // here the last one would win
		lines = append(lines, "MaxStartups 500:30:1000")
	}
	conf := filepath.Join(dir, "sshd_config")
	write(t, conf, strings.Join(lines, "\n")+"\n")
	os.MkdirAll("/run/sshd", 0o755) // privilege separation; only root needs and can make it
	argv = append(argv, binary, "-D", "-e", "-f", conf)
	s.cmd = exec.Command(argv[0], argv[1:]...)
	listen(t, s.cmd, s.log, s.Port)
	return s
}

// OpenDir is a directory that every account can reach, which t.TempDir is not.
func OpenDir(t testing.TB, mode os.FileMode) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "open-")
	if err == nil {
		err = os.Chmod(dir, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// listen starts a server, waits until its port answers, and has the test end it.
func listen(t testing.TB, server *exec.Cmd, log *logBuffer, port int) {
	t.Helper()
	server.Stderr = log
	server.WaitDelay = 100 * time.Millisecond // what it started may live on and hold its standard error
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() { server.Process.Kill(); <-ended })
	there := Listens("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if !waittest.Comes(func() bool { return len(ended) > 0 || there() }) || len(ended) > 0 {
		t.Fatalf("%s does not listen: %s", server.Path, log)
	}
}

// Listens reports whether somebody listens at an address.
func Listens(network, address string) func() bool {
	return func() bool {
		c, err := net.Dial(network, address)
		if err == nil {
			c.Close()
		}
		return err == nil
	}
}

// FreePort is a port that nobody listens on, and that is given to no other test as long as this
// process lives. It lies below those that the kernel gives to connections and to listeners
// (ip_local_port_range), which could be taken before sshd has it.
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

// reserve takes a name in the abstract namespace (unix(7)), which only one process can have and has
// until it ends.
func reserve(name string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		if err = unix.Bind(fd, &unix.SockaddrUnix{Name: name}); err != nil {
			unix.Close(fd)
		}
	}
	return err
}
