package loopback

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"sshpace/internal/base/waittest"
	"sshpace/internal/bench/benchtest"
	"sshpace/internal/bench/helper"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
)

func TestMain(m *testing.M) {
	benchtest.Serve()
	goleak.VerifyTestMain(m)
}

// lab is a private directory with keys, and a spawner.
func lab(t *testing.T) (*safedir.Workdir, Keys, *proc.Spawner) {
	t.Helper()
	dir, spawner := benchtest.Workdir(t, safedir.WorkdirParams{})
	keys, err := MakeKeys(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, keys, spawner
}

func start(t *testing.T, argv ...string) *Server {
	t.Helper()
	dir, _, spawner := lab(t)
	return startIn(t, dir, spawner, argv...)
}

func startIn(t *testing.T, dir *safedir.Workdir, spawner *proc.Spawner, argv ...string) *Server {
	t.Helper()
	s, err := Site{Dir: dir, Spawner: spawner}.Start(argv)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func dial(t *testing.T, s *Server) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", net.JoinHostPort(s.Address()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func next(t *testing.T, s *Server) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	conn, ok := s.Next(ctx)
	if !ok {
		t.Fatal("no connection came")
	}
	return conn
}

// The real sshd through it: two connections at once, a login on one, the cost of the whole process
// tree, and the end of the other with Close.
func TestRealServer(t *testing.T) {
	dir, keys, spawner := lab(t)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	config := dir.File("sshd_config")
	text := fmt.Sprintf("HostKey %s\nAuthorizedKeysFile %s\nUsePAM no\nStrictModes no\nPidFile none\nPermitRootLogin prohibit-password\nSetEnv HOME=%s\n", keys.HostKey, keys.AuthorizedKeys, dir.Path)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if me.Uid == "0" {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s := startIn(t, dir, spawner, "/usr/sbin/sshd", "-i", "-e", "-f", config)
	host, port := s.Address()
	ssh := func(swift bool) time.Duration {
		s.Fresh(swift)
		started := time.Now()
		out, err := exec.Command("ssh", "-F", "/dev/null", "-p", port, "-i", keys.Identity, "-o", "UserKnownHostsFile="+keys.KnownHosts, "-o", "GlobalKnownHostsFile=none",
			"-o", "HostKeyAlias="+Alias, "-o", "StrictHostKeyChecking=yes", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
			"--", me.Username+"@"+host, "echo hello").CombinedOutput()
		if err != nil || !strings.Contains(string(out), "hello") {
			t.Fatalf("ssh: %v\n%s", err, out)
		}
		return time.Since(started)
	}
	idle := dial(t, s)
	waiting := next(t, s)
	ssh(false)
	served := next(t, s)
	if served.Process.Pid == waiting.Process.Pid {
		t.Error("two connections share a process")
	}
	if cpu := served.Leave(10 * time.Second); cpu <= 0 || cpu > time.Minute {
		t.Errorf("a login cost the server %v", cpu)
	}
	if tail := s.LogTail(); tail != "" {
		t.Errorf("a login that went well is explained by %q", tail)
	}
	ssh(true)
	next(t, s).Settled()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	waittest.Gone(t, waiting.Process.Pid)
	_ = idle.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, idle); err != nil {
		t.Errorf("the idle connection ended with %v", err)
	}
}

// A server process that does not end by itself is killed after the grace.
func TestEndedKills(t *testing.T) {
	s := start(t, "/bin/sh", "-c", "trap '' TERM HUP; while :; do :; done")
	dial(t, s)
	conn := next(t, s)
	if cpu := conn.Leave(50 * time.Millisecond); cpu <= 0 {
		t.Errorf("a busy process cost %v", cpu)
	}
	waittest.Gone(t, conn.Process.Pid)
}

// What the process starts dies with it.
func TestEndedKillsTheGroup(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	s := start(t, "/bin/sh", "-c", `sleep 600 & echo $! >"$0.tmp"; mv "$0.tmp" "$0"; wait`, pidFile)
	dial(t, s)
	conn := next(t, s)
	var child int
	waittest.Until(t, "a child", func() bool {
		text, _ := os.ReadFile(pidFile)
		_, _ = fmt.Sscan(string(text), &child)
		return child != 0
	})
	conn.Leave(0)
	waittest.Gone(t, child)
}

func TestNextIsTheNewest(t *testing.T) {
	s := start(t, "/bin/cat")
	for range 3 { // one after the other, so that their order is known
		conn := dial(t, s)
		if _, err := conn.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	conn := next(t, s)
	s.mu.Lock()
	newest := conn.Process.Pid
	for other := range s.live {
		newest = max(newest, other.Process.Pid)
	}
	s.mu.Unlock()
	if conn.Process.Pid != newest {
		t.Errorf("Next is process %d, the newest is %d", conn.Process.Pid, newest)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := s.Next(ctx); ok {
		t.Error("a connection comes twice")
	}
}

func TestFreshForgets(t *testing.T) {
	s := start(t, "/bin/sh", "-c", "echo 'fatal: old' >&2; cat")
	conn := dial(t, s)
	conn.(*net.TCPConn).CloseWrite()
	next(t, s).Leave(20 * time.Second)
	if tail := s.LogTail(); tail != "fatal: old" {
		t.Errorf("LogTail is %q", tail)
	}
	s.Fresh(false)
	if tail := s.LogTail(); tail != "" {
		t.Errorf("LogTail after Fresh is %q", tail)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := s.Next(ctx); ok {
		t.Error("Fresh left a connection")
	}
}

func TestLogTailFindsTheReason(t *testing.T) {
	for lines, want := range map[string]string{
		"User x not allowed because account is locked\\nConnection closed by 127.0.0.1": "User x not allowed because account is locked",
		"Accepted publickey for x from 127.0.0.1\\nDisconnected from user x":            "",
		"one\\ntwo": "two",
	} {
		s := start(t, "/bin/sh", "-c", "printf '"+lines+"\\n' >&2")
		dial(t, s)
		next(t, s).Leave(20 * time.Second)
		if tail := s.LogTail(); tail != want {
			t.Errorf("LogTail of %q is %q, want %q", lines, tail, want)
		}
	}
}

func TestAServerThatCannotStart(t *testing.T) {
	s := start(t, "/nonexistent/sshd")
	conn := dial(t, s)
	if _, err := io.Copy(io.Discard, conn); err != nil {
		t.Errorf("the connection ended with %v", err)
	}
	if tail := s.LogTail(); !strings.Contains(tail, "/nonexistent/sshd") {
		t.Errorf("LogTail is %q", tail)
	}
}

// A crowd of connections does not become a crowd of processes.
func TestCrowd(t *testing.T) {
	s := start(t, "/bin/cat")
	for range maxLive {
		dial(t, s)
		next(t, s)
	}
	late := dial(t, s)
	_ = late.SetReadDeadline(time.Now().Add(20 * time.Second))
	if n, err := late.Read(make([]byte, 1)); n != 0 || (err != io.EOF && !strings.Contains(err.Error(), "reset")) {
		t.Errorf("one connection too many: %d, %v", n, err)
	}
}

// Files of a run are its owner's alone, and the user key is the one that may log in.
func TestMakeKeys(t *testing.T) {
	dir, keys, _ := lab(t)
	for _, path := range []string{keys.HostKey, keys.Identity, keys.AuthorizedKeys, keys.KnownHosts} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 || filepath.Dir(path) != dir.Path {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	public := func(path string) string {
		out, err := exec.Command("ssh-keygen", "-y", "-f", path).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(strings.Fields(string(out))[:2], " ")
	}
	authorized, _ := os.ReadFile(keys.AuthorizedKeys)
	known, _ := os.ReadFile(keys.KnownHosts)
	if got := strings.TrimSpace(string(authorized)); got != public(keys.Identity) {
		t.Errorf("authorized is %q", got)
	}
	if got := strings.TrimSpace(string(known)); got != Alias+",[127.0.0.1]:* "+public(keys.HostKey) {
		t.Errorf("known is %q", got)
	}
}

// A server whose directory is not the one any more that its configuration was written to is not
// started.
func TestSwappedDirectoryIsNotServed(t *testing.T) {
	dir, _, spawner := lab(t)
	s := startIn(t, dir, spawner, "/bin/echo", "started")
	aside := dir.Path + "-aside"
	if err := os.Rename(dir.Path, aside); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(aside)
	if err := os.Mkdir(dir.Path, 0o700); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(dial(t, s)); err != nil || len(text) != 0 {
		t.Errorf("answered %q, %v", text, err)
	}
	if tail := s.LogTail(); !strings.Contains(tail, "was replaced by another directory") {
		t.Errorf("LogTail is %q", tail)
	}
}

// Another user of this machine is turned away before a process is started.
func TestForeignersAreTurnedAway(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	s := start(t, "/bin/cat")
	_, port := s.Address()
	cmd := exec.Command("bash", "-c", `exec 3<>/dev/tcp/127.0.0.1/"$0"; echo hello >&3; read -t 20 -u 3 line; echo "got <$line>"`, port)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, _ := cmd.CombinedOutput() // the write may fail, too
	if strings.Contains(string(out), "got <hello>") {
		t.Errorf("a foreigner was served: %s", out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, ok := s.Next(ctx); ok {
		t.Error("a foreigner's connection is offered")
	}
}

// A server is ready when it has greeted; one that does not is closed, and the error has its reason.
func TestServe(t *testing.T) {
	dir, keys, spawner := lab(t)
	site := Site{Dir: dir, Spawner: spawner, Keys: keys}
	s, greeting, err := site.Serve(t.Context(), append(helper.Line("native-server"), keys.HostKey, keys.AuthorizedKeys, dir.Path), 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(greeting.Offer.Ciphers) == 0 {
		t.Errorf("it offers %v", greeting.Offer)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	s, _, err = site.Serve(t.Context(), []string{"/bin/sh", "-c", "echo 'fatal: no key' >&2"}, 20*time.Second)
	if err == nil || s != nil || !strings.Contains(err.Error(), "fatal: no key") {
		t.Errorf("a server without a greeting: %v, %v", s, err)
	}
}
