package mux_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/sshtest"
)

// anyKey trusts every key.
type anyKey struct{}

func (anyKey) Algorithms(context.Context, string, int, []string) ([]string, error) {
	return []string{ssh.KeyAlgoED25519}, nil
}

func (anyKey) Check(context.Context, string, int, net.Addr, ssh.PublicKey) error { return nil }

// served is a Server with a connection of ours.
type served struct {
	*mux.Server
	path string
	end  context.CancelFunc
	over chan error // what Serve returns
}

// serve serves a connection to a port, until the test ends.
func serve(t *testing.T, port int, user, key string, silence time.Duration) *served {
	t.Helper()
	dir, err := os.MkdirTemp("", "mux") // short: a socket's path has 108 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	e := dial.New(nil, dial.Options{})
	t.Cleanup(func() { e.Close() })
	c, err := e.Open(t.Context(), &dial.Target{HostName: "127.0.0.1", Port: port, User: user, HostKeys: anyKey{}, Identity: dial.Identity{Files: []string{key}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); <-c.Done() })
	l, err := mux.Listen(filepath.Join(dir, "m"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(context.Background())
	s := &served{&mux.Server{Conn: c, Silence: silence, SendEnv: []string{"X_*"}, SetEnv: []string{"X_ALL=all"}}, l.Path, end, make(chan error, 1)}
	go func() { s.over <- s.Serve(ctx, l); close(s.over) }()
	t.Cleanup(func() { end(); <-s.over })
	return s
}

func serveSshd(t *testing.T, extra ...string) (*served, *sshtest.Sshd) {
	t.Helper()
	s := sshtest.StartSshdForOther(t, append(extra, "AcceptEnv X_*", "Subsystem sftp internal-sftp")...)
	return serve(t, s.Port, s.User, s.Key, 0), s
}

// ssh is the installed ssh over the master.
func (s *served) ssh(args ...string) *exec.Cmd {
	return exec.Command("ssh", append([]string{"-F", "none", "-S", s.path}, args...)...)
}

// says runs ssh, and returns its output and exit status.
func (s *served) says(t *testing.T, args ...string) (string, int) {
	t.Helper()
	cmd := s.ssh(args...)
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// TestServer: ssh runs what it is asked for over a connection of ours.
func TestServer(t *testing.T) {
	s, sshd := serveSshd(t)
	to := fmt.Sprintf("127.0.0.1:%d", sshd.Port)
	for _, c := range []struct {
		args string
		says string
		exit int
	}{
		{"x|true", "", 0},
		{"x|exit 7", "", 7},
		{"x|echo out; echo err >&2", "out\nerr\n", 0},
		{"x|kill -9 $$", "", 255},
		{"-o|SetEnv X_A=1 Y_A=2|x|echo $X_A $Y_A $X_ALL", "1 all\n", 0},
		{"-s|x|none", "subsystem request failed on channel", 255},
		{"-tt|x|tty >/dev/null && echo terminal", "terminal\r\n", 0},
		{"-O|check|x", fmt.Sprintf("Master running (pid=%d)\r\n", os.Getpid()), 0},
		{"-A|-X|x|echo ${SSH_AUTH_SOCK-none} ${DISPLAY-none}", "none none\n", 0},
		{"-W|" + to + "|x", "SSH-2.0-", 0},
		{"-W|127.0.0.1:1|x", "Session open refused by peer", 255},
		{"-O|cancel|-L|1:x:1|x", "port not forwarded", 0},
	} {
		if out, exit := s.says(t, strings.Split(c.args, "|")...); !strings.Contains(out, c.says) || exit != c.exit || c.says == "" && out != "" {
			t.Errorf("ssh %s: %q, exit %d, want %q, %d", c.args, out, exit, c.says, c.exit)
		}
	}
	if n := s.Sessions(); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

// TestServerData: bytes arrive in both directions, as they are, whatever the files are, while the
// server exchanges keys and asks whether we live; the end of input arrives, and so does the end of
// whoever reads the output.
func TestServerData(t *testing.T) {
	s, _ := serveSshd(t, "RekeyLimit 1M", "ClientAliveInterval 1", "ClientAliveCountMax 1")
	data := bytes.Repeat([]byte("0123456789abcde\n"), 1<<19) // 8 MiB
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("%x", sha256.Sum256(data))
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for name, r := range map[string]io.Reader{"pipe": bytes.NewReader(data), "file": in} {
		cmd := s.ssh("x", "cat; cat /dev/null; exit 3")
		cmd.Stdin = r
		out, err := cmd.Output()
		if sum := fmt.Sprintf("%x", sha256.Sum256(out)); sum != want || cmd.ProcessState.ExitCode() != 3 {
			t.Errorf("%s: %d bytes came back, %v", name, len(out), err)
		}
	}
	many := make(chan error)
	for range 4 {
		go func() {
			cmd := s.ssh("x", "cat")
			cmd.Stdin = bytes.NewReader(data)
			out, err := cmd.Output()
			if !bytes.Equal(out, data) {
				err = fmt.Errorf("%d bytes, %v", len(out), err)
			}
			many <- err
		}()
	}
	for range 4 {
		if err := <-many; err != nil {
			t.Errorf("beside one another: %v", err)
		}
	}
	cmd := exec.Command("sh", "-c", `ssh -F none -S "$0" x yes | head -n 1`, s.path)
	if out, err := cmd.CombinedOutput(); string(out) != "y\n" {
		t.Errorf("%q, %v", out, err)
	}
	local, err := os.MkdirTemp("", "muxcopy")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(local)
	there := t.TempDir()
	if err := errors.Join(os.Chmod(there, 0o777), os.Chmod(filepath.Dir(there), 0o755)); err != nil {
		t.Fatal(err)
	}
	path := "ControlPath=" + s.path
	for i, argv := range [][]string{
		{"scp", "-F", "none", "-o", path, file, "x:" + there + "/scp"},
		{"scp", "-F", "none", "-o", path, "x:" + there + "/scp", local + "/0"},
		{"rsync", "-e", "ssh -F none -S " + s.path, file, "x:" + there + "/rsync"},
		{"rsync", "-e", "ssh -F none -S " + s.path, "x:" + there + "/rsync", local + "/1"},
	} {
		if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%q: %s, %v", argv, out, err)
		}
		if i%2 == 1 {
			if got, _ := os.ReadFile(fmt.Sprintf("%s/%d", local, i/2)); !bytes.Equal(got, data) {
				t.Errorf("%q: %d bytes", argv, len(got))
			}
		}
	}
}

// pseudo is a terminal.
func pseudo(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ours.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	_ = raw.Control(func(fd uintptr) {
		err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	return ours, theirs
}

func resize(f *os.File, columns, rows uint16) {
	raw, err := f.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows})
		})
	}
}

// TestServerTerminal: a session has a terminal like that of its client, follows its size, and ends
// with an escape sequence. The client's terminal waits afterwards as it did before.
func TestServerTerminal(t *testing.T) {
	s, _ := serveSshd(t)
	ours, theirs := pseudo(t)
	resize(ours, 91, 31)
	cmd := s.ssh("-tt", "x", "stty size; stty -a | tr ' ' '\\n' | grep -x -e '-\\?onlcr'; echo $TERM; read x; stty size; echo got $x; sleep 1000")
	cmd.Env = append(os.Environ(), "TERM=vt220")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { cmd.Process.Kill(); cmd.Wait() }()
	lines := bufio.NewReader(ours)
	expect := func(want string) {
		t.Helper()
		for {
			text, err := lines.ReadString('\n')
			if strings.Contains(text, want) {
				return
			}
			if err != nil {
				t.Fatalf("no %q: %v", want, err)
			}
		}
	}
	expect("31 91")
	expect("onlcr")
	expect("vt220")
	resize(ours, 101, 41)
	time.Sleep(100 * time.Millisecond) // the size must be there before the line is read
	io.WriteString(ours, "~~word\r")
	expect("41 101")
	expect("got ~word")
	io.WriteString(ours, "~?")
	expect("~. end this session")
	io.WriteString(ours, "~.")
	expect("~.")
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 255 {
		t.Errorf("%v, want 255", err)
	}
	if flags, err := unix.FcntlInt(theirs.Fd(), unix.F_GETFL, 0); err != nil || flags&unix.O_NONBLOCK != 0 {
		t.Errorf("the terminal does not wait any more: %v", err)
	}
}

// TestServerForwards: forwards are opened and cancelled, of all kinds.
func TestServerForwards(t *testing.T) {
	s, sshd := serveSshd(t)
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	free := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	}
	greets := func(network, address string) bool {
		c, err := net.Dial(network, address)
		if err != nil {
			return false
		}
		defer c.Close()
		text, _ := bufio.NewReader(c).ReadString('\n')
		return strings.HasPrefix(text, "SSH-2.0-")
	}
	socks := func(flags ...string) func(network, address string) bool {
		return func(_, address string) bool {
			out, _ := exec.Command("curl", append(flags, address, "-s", "--http0.9", "-m", "20", fmt.Sprintf("http://127.0.0.1:%d/", sshd.Port))...).Output()
			return strings.HasPrefix(string(out), "SSH-2.0-")
		}
	}
	to := fmt.Sprintf("127.0.0.1:%d", sshd.Port)
	if out, exit := s.says(t, "-O", "forward", "-L", dir+"/on:"+to, "x"); exit != 0 {
		t.Fatal(out)
	}
	for _, c := range []struct {
		flag, at, to string
		works        func(network, address string) bool
	}{
		{"-L", free(), ":" + to, greets},
		{"-R", free(), ":" + to, greets},
		{"-L", dir + "/l", ":" + to, greets},
		{"-R", dir + "/r", ":" + dir + "/on", greets},
		{"-D", free(), "", socks("--socks5-hostname")},
		{"-D", free(), "", socks("--socks5")},
		{"-D", free(), "", socks("--socks4")},
		{"-D", free(), "", socks("--socks4a")},
		{"-R", free(), "", socks("--socks5")},
	} {
		network, address := "tcp", "127.0.0.1:"+c.at
		if strings.HasPrefix(c.at, "/") {
			network, address = "unix", c.at
		}
		for _, command := range []string{"forward", "cancel"} {
			if out, exit := s.says(t, "-O", command, c.flag, c.at+c.to, "x"); exit != 0 {
				t.Errorf("%s %s %s: %s", command, c.flag, c.at, out)
			}
			if works := c.works(network, address); works != (command == "forward") {
				t.Errorf("%s %s%s: works %v after %s", c.flag, c.at, c.to, works, command)
			}
		}
	}
	out, exit := s.says(t, "-O", "forward", "-R", "0:"+to, "x")
	if exit != 0 || !greets("tcp", "127.0.0.1:"+strings.TrimSpace(out)) {
		t.Errorf("a port that the server chooses: %q", out)
	}
	for _, flag := range []string{"-L", "-R"} {
		if out, exit := s.says(t, "-O", "forward", flag, to+":"+to, "x"); exit == 0 {
			t.Errorf("%s of a port that is taken: %s", flag, out)
		}
	}
	if out, _ := s.says(t, "-O", "cancel", "-L", "9:"+to, "x"); !strings.Contains(out, "port not forwarded") {
		t.Errorf("cancelled what is not there: %q", out)
	}
}

// TestServerEnds: -O stop lets sessions end, -O exit does not, and neither does the end of the
// connection. The socket goes at once.
func TestServerEnds(t *testing.T) {
	key, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	for name, c := range map[string]struct {
		end  func(s *served, far *sshtest.Server)
		exit int
		err  error
	}{
		"stop": {func(s *served, _ *sshtest.Server) { s.says(t, "-O", "stop", "x") }, 0, mux.ErrStopped},
		"exit": {func(s *served, _ *sshtest.Server) { s.says(t, "-O", "exit", "x") }, 255, mux.ErrExit},
		"lost": {func(_ *served, far *sshtest.Server) { far.Close() }, 255, io.EOF},
		"end":  {func(s *served, _ *sshtest.Server) { s.end() }, 255, context.Canceled},
	} {
		far := (&sshtest.Server{Exec: func(x *sshtest.Session) { io.Copy(x, x); x.Exit(0) }}).Start(t)
		s := serve(t, far.Port(), "u", key, 0)
		cmd := s.ssh("x", "cat")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if !waittest.Comes(func() bool { return s.Sessions() == 1 }) {
			t.Errorf("%s: no session", name)
		}
		c.end(s, far)
		if !waittest.Comes(func() bool { _, err := os.Lstat(s.path); return errors.Is(err, os.ErrNotExist) }) {
			t.Errorf("%s: the socket is left", name)
		}
		if out, exit := s.says(t, "x", "true"); exit != 255 || !strings.Contains(out, "Could not resolve") && !strings.Contains(out, "onnect") {
			t.Errorf("%s: ssh after the end: %q, exit %d", name, out, exit)
		}
		if c.exit == 0 {
			in.Close()
		}
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != c.exit {
			t.Errorf("%s: exit %d, want %d", name, got, c.exit)
		}
		err = <-s.over
		reset := c.err == io.EOF && errors.Is(err, syscall.ECONNRESET) // where something was on its way
		if !errors.Is(err, c.err) && !reset {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestServerClientGone: the end of a client ends its session, while others go on, even if it has
// held up its output.
func TestServerClientGone(t *testing.T) {
	s, _ := serveSshd(t)
	for name, argv := range map[string][]string{"quiet": {"x", "cat"}, "stuck": {"x", "yes"}, "terminal": {"-tt", "x", "echo; sleep 1000"}, "proxy": {"-O", "proxy", "x", "yes"}} {
		cmd := s.ssh(argv...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		w.Close()
		if !waittest.Comes(func() bool { return s.Sessions() == 1 }) {
			t.Errorf("%s: no session", name)
		}
		if name != "quiet" { // sshd ends no process that does not have its terminal yet
			if _, err := r.Read(make([]byte, 1)); err != nil {
				t.Error(err)
			}
		}
		if out, exit := s.says(t, "x", "echo other"); out != "other\n" || exit != 0 {
			t.Errorf("beside %s: %q", name, out)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if !waittest.Comes(func() bool { return s.Sessions() == 0 }) {
			t.Errorf("%s: the session goes on", name)
		}
		r.Close()
		in.Close()
	}
	if out, _ := s.says(t, "x", "ps -o args= --ppid $PPID"); strings.Contains(out, "sleep 1000") {
		t.Errorf("still there: %s", out)
	}
}

// TestServerProxy: our own client runs commands over a Server, and ends them.
func TestServerProxy(t *testing.T) {
	s, _ := serveSshd(t)
	var says bytes.Buffer
	drain, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	sink := &sshtest.Told{OnOutput: func(e fleet.Event) error { says.Write(e.Data); return nil }}
	if r := run(t, &shared{path: s.path}, fanout.Params{}, fleet.Command{Line: "echo here; exit 4"}, sink); r.Exit != 4 || says.String() != "here\n" {
		t.Errorf("%+v %q", r, says.String())
	}
	sink = &sshtest.Told{OnOutput: func(fleet.Event) error { interrupt(); return nil }}
	r := run(t, &shared{path: s.path}, fanout.Params{Drain: drain}, fleet.Command{Line: "trap 'exit 9' TERM; echo here; while :; do sleep 0.1; done"}, sink)
	if r.Class != fleet.Cancelled || r.Exit != 9 {
		t.Errorf("%+v", r)
	}
	if n := s.Sessions(); n != 0 && !waittest.Comes(func() bool { return s.Sessions() == 0 }) {
		t.Errorf("%d sessions are left", n)
	}
}

// TestServerRefused: a server that opens no session leaves the master and its clients alone, in
// both modes.
func TestServerRefused(t *testing.T) {
	s, sshd := serveSshd(t, "MaxSessions 0")
	if out, exit := s.says(t, "x", "true"); exit != 255 || !strings.Contains(out, "Session open refused by peer") {
		t.Errorf("%q, exit %d", out, exit)
	}
	x := &shared{path: s.path}
	run(t, x, fanout.Params{}, fleet.Command{Line: "true"}, &sshtest.Told{})
	if x.err == nil || strings.Contains(x.err.Error(), "has ended over that") {
		t.Errorf("our client: %v", x.err)
	}
	if _, exit := s.says(t, "-O", "check", "x"); exit != 0 {
		t.Error("the master has ended")
	}
	if out, exit := s.says(t, "-W", fmt.Sprintf("127.0.0.1:%d", sshd.Port), "x"); !strings.Contains(out, "SSH-2.0-") || exit != 0 {
		t.Errorf("a connection to somewhere: %q, exit %d", out, exit)
	}
}

// TestListen: only a dead socket of ours is replaced, and only our own socket is removed.
func TestListen(t *testing.T) {
	dir, err := os.MkdirTemp("", "mux")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "m")
	one, err := mux.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := mux.Listen(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("a live socket: %v", err)
	}
	if _, err := mux.Listen(path + strings.Repeat("m", 100)); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a name that nobody can connect to: %v", err)
	}
	os.Remove(path)
	two, err := mux.Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	one.Close()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("another one's socket was removed: %v", err)
	}
	two.UnixListener.Close() // as if the process was killed
	three, err := mux.Listen(path)
	if err != nil {
		t.Fatalf("a dead socket: %v", err)
	}
	three.Close()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := mux.Listen(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("a file: %v", err)
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 1 {
		t.Errorf("left: %v, %v", names, err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := mux.Listen(filepath.Join(dir, "n")); err == nil {
		t.Error("a directory of everybody was taken")
	}
}

// TestServerStrangers: clients that read nothing, and those in proxy mode that name channels of
// others, disturb nobody.
func TestServerStrangers(t *testing.T) {
	s, sshd := serveSshd(t)
	cat := s.ssh("x", "cat")
	in, inErr := cat.StdinPipe()
	out, outErr := cat.StdoutPipe()
	if err := errors.Join(inErr, outErr, cat.Start()); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	echoes := func(when string) {
		t.Helper()
		io.WriteString(in, when+"\n")
		if line, err := lines.ReadString('\n'); line != when+"\n" {
			t.Errorf("%s: %q, %v", when, line, err)
		}
		port := fmt.Sprint(20000 + os.Getpid()%10000)
		for _, command := range []string{"forward", "cancel"} {
			if out, exit := s.says(t, "-O", command, "-L", port+":127.0.0.1:"+fmt.Sprint(sshd.Port), "x"); exit != 0 {
				t.Errorf("%s: %s: %s", when, command, out)
			}
		}
	}
	message := func(kind uint32, more ...any) (p []byte) {
		p = ssh.Marshal(struct{ Length, Kind uint32 }{0, kind})
		for _, m := range more {
			p = append(p, ssh.Marshal(m)...)
		}
		binary.BigEndian.PutUint32(p, uint32(len(p)-4))
		return p
	}
	type number struct{ N uint32 }
	hello := message(1, number{4})
	echoes("before")
	conn := func(data []byte) *net.UnixConn {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: s.path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		_ = c.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)) // it stops taking
		_, _ = c.Write(append(hello, data...))
		return c
	}
	forward := message(0x10000006, number{7}, struct {
		Kind, Length, From uint32
		To                 string
		Port               uint32
	}{1, 0, 0, "127.0.0.1", 1})
	for _, asked := range [][]byte{message(0x10000004, number{7}), message(0x20000001, struct {
		ID   uint32
		Text string
	}{7, "channels"}), forward} {
		conn(bytes.Repeat(asked, 1<<20/len(asked)))
	}
	echoes("beside clients that read nothing")
	proxy := message(0x1000000f, number{7})
	for kind := byte(80); kind <= 100; kind++ {
		for channel := range uint32(6) {
			packet := append(ssh.Marshal(struct {
				Length        uint32
				Padding, Kind byte
				Channel       uint32
			}{2 + 4 + 100, 0, kind, channel}), make([]byte, 100)...)
			c := conn(append(bytes.Clone(proxy), packet...))
			_ = c.CloseWrite()
			_, _ = io.Copy(io.Discard, c)
		}
	}
	echoes("after channels of others were named")
	in.Close()
	if err := cat.Wait(); err != nil {
		t.Error(err)
	}
}
