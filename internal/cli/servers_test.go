package cli_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// serverCommands are the script commands that start real servers on loopback
// and write how to reach them into $WORK/ssh_config and $WORK/known_hosts:
//
//	sshd NAME [option]...      OpenSSH's sshd; $WORK/NAME is the HOME of sessions
//	dropbear NAME              Dropbear
//	tinysshd NAME              TinySSH
//	silent NAME                a port that accepts and says nothing
//	other NAME TEXT            a port that says TEXT and hangs up; each connection is a line of NAME.connections
//	deaf NAME                  a port on which nothing listens
//	fickle NAME SERVER COUNT   a way to SERVER that hangs up after COUNT connections
//	narrow NAME SERVER RATE    a way to SERVER that carries so many bytes per second
//	far NAME SERVER DELAY      a way to SERVER that takes so long each way
//	late NAME SERVER N DELAY   a way to SERVER on which all that it sends after N bytes is so late, once
//	swallow NAME SERVER MTU    a way to SERVER that loses what comes in larger pieces, and all behind it
//	backlog NAME SERVER        a way to SERVER that has no room for the first packet of a connection
//	agent NAME DELAY           an agent with the user key that takes so long for a signature
//	paste REPORT CHECK...      run what doctor's JSON says to do
//	alone FILE                 a shell script in a network of its own (root only)
//	hold NAME                  an idle connection to a server
//	slayer PROCESS TEXT        kill a process of the script's sshpace by name and arguments
//	gone PATTERN               wait until no process' command line has PATTERN
//	waitfor FILE TEXT          wait until a file holds a text
//	eventually PROGRAM...      run a program until it ends well
//	typing ANSWER TEXT COMMAND run a command on a terminal, and type when it shows a text
//	tmpfs DIR SIZE [readonly]  a small file system (root only)
func serverCommands() map[string]func(ts *testscript.TestScript, neg bool, args []string) {
	return map[string]func(ts *testscript.TestScript, neg bool, args []string){
		"sshd": startSSHD, "dropbear": startDropbear, "tinysshd": startTinySSHD,
		"silent": startSilent, "other": startOther, "deaf": startDeaf, "fickle": startFickle, "narrow": startNarrow, "hold": holdConnection,
		"far": startFar, "late": startLate, "swallow": startSwallow, "backlog": startBacklog, "agent": startAgent, "paste": paste, "alone": alone,
		"slayer": slay, "gone": awaitGone, "tmpfs": mountTmpfs, "waitfor": awaitFile, "eventually": eventually, "typing": typing,
	}
}

func setupServers(env *testscript.Env) error {
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("XDG_STATE_HOME", filepath.Join(env.WorkDir, "state"))
	five, err := filepath.Abs("../record/legacylog/testdata/five-machines.txt")
	if err != nil {
		return err
	}
	env.Setenv("FIVE", five)
	recorded, err := filepath.Abs("testdata/recorded")
	if err != nil {
		return err
	}
	env.Setenv("RECORDED", recorded)
	env.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:"+env.Getenv("PATH"))
	env.Defer(func() { checkLeftovers(env) })
	return nil
}

// checkLeftovers fails a script that leaves a process or a private directory of
// sshpace behind. It runs last, when the script's own servers are gone.
func checkLeftovers(env *testscript.Env) {
	var left []string
	if !waittest.Comes(func() bool {
		left, _ = filepath.Glob(filepath.Join(env.WorkDir, ".cache", "sshpace", "sshpace-*"))
		for _, p := range processes() {
			if strings.Contains(p.args, env.WorkDir+"/") && (strings.Contains(p.args, "--helper") || p.name == "ssh" || p.name == "sshd") {
				left = append(left, p.args)
			}
		}
		return len(left) == 0
	}) {
		env.T().Fatal("left behind: ", strings.Join(left, "\n"))
	}
}

// freePort is a port that was free a moment ago.
func freePort(ts *testscript.TestScript) string {
	port, err := sshtest.FreePort()
	ts.Check(err)
	return strconv.Itoa(port)
}

// keyPair writes an Ed25519 key pair and returns its public half.
func keyPair(ts *testscript.TestScript, path string) string {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	ts.Check(err)
	block, err := ssh.MarshalPrivateKey(private, "")
	ts.Check(err)
	ts.Check(os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	key, err := ssh.NewPublicKey(public)
	ts.Check(err)
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// identity makes the user key of the script once.
func identity(ts *testscript.TestScript) (public string) {
	path := ts.MkAbs("user_key")
	if text, err := os.ReadFile(path + ".pub"); err == nil {
		return string(text)
	}
	public = keyPair(ts, path)
	ts.Check(os.WriteFile(path+".pub", []byte(public), 0o600))
	return public
}

// describe adds a host to the script's ssh_config and its key to known_hosts.
func describe(ts *testscript.TestScript, name, port, hostKey string) {
	appendTo(ts, "ssh_config", fmt.Sprintf(`Host %s
  HostName 127.0.0.1
  Port %s
  HostKeyAlias %s
  UserKnownHostsFile %s
  IdentityFile %s
  IdentitiesOnly yes
  IdentityAgent none
`, name, port, name, ts.MkAbs("known_hosts"), ts.MkAbs("user_key")))
	if hostKey != "" {
		appendTo(ts, "known_hosts", name+" "+hostKey+"\n")
	}
	ts.Setenv(strings.ToUpper(name)+"_PORT", port)
}

func appendTo(ts *testscript.TestScript, file, text string) {
	f, err := os.OpenFile(ts.MkAbs(file), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	ts.Check(err)
	_, err = f.WriteString(text)
	ts.Check(err)
	ts.Check(f.Close())
}

// daemon starts a server, waits for its port and ends it with the script.
func daemon(ts *testscript.TestScript, port string, cmd *exec.Cmd) {
	log, err := os.Create(ts.MkAbs(filepath.Base(cmd.Path) + "." + port + ".log"))
	ts.Check(err)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	ts.Check(cmd.Start())
	ts.Defer(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
		log.Close()
	})
	if !waittest.Comes(sshtest.Listens("tcp", "127.0.0.1:"+port)) {
		text, _ := os.ReadFile(log.Name())
		ts.Fatalf("%s does not listen\n%s", cmd.Path, text)
	}
}

func startSSHD(ts *testscript.TestScript, _ bool, args []string) {
	name, port, dir := args[0], freePort(ts), ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	hostKey := keyPair(ts, filepath.Join(dir, "host_key"))
	ts.Check(os.WriteFile(filepath.Join(dir, "authorized_keys"), []byte(identity(ts)+"\n"), 0o600))
	lines := []string{
		"Port " + port, "ListenAddress 127.0.0.1", "HostKey " + filepath.Join(dir, "host_key"),
		"AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys"), "PidFile none", "UsePAM no", "StrictModes no",
		"PasswordAuthentication no", "KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password", "SetEnv HOME=" + dir,
	}
	if !strings.Contains(strings.Join(args[1:], "\n"), "Subsystem sftp") {
		lines = append(lines, "Subsystem sftp internal-sftp")
	}
	config := filepath.Join(dir, "sshd_config")
	ts.Check(os.WriteFile(config, []byte(strings.Join(append(args[1:], lines...), "\n")+"\n"), 0o600))
	ts.Check(os.MkdirAll("/run/sshd", 0o755))
	describe(ts, name, port, hostKey)
	daemon(ts, port, exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config))
}

// hostKeyOf asks a server for its key, as ssh-keyscan does.
func hostKeyOf(ts *testscript.TestScript, port string) string {
	var key string
	if !waittest.Comes(func() bool { // some servers drop connections at random
		out, _ := exec.Command("ssh-keyscan", "-p", port, "-t", "ed25519", "127.0.0.1").Output()
		_, key, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
		return key != ""
	}) {
		ts.Fatalf("no host key at port %s", port)
	}
	return key
}

// inHome is the command line of a server that looks for authorized_keys in the
// home directory of the account: it sees a private one, mounted in its place.
func inHome(ts *testscript.TestScript, argv ...string) *exec.Cmd {
	me, err := user.Current()
	ts.Check(err)
	home := ts.MkAbs("home")
	ts.Check(os.MkdirAll(filepath.Join(home, ".ssh"), 0o700))
	ts.Check(os.WriteFile(filepath.Join(home, ".ssh", "authorized_keys"), []byte(identity(ts)+"\n"), 0o600))
	script := `mount --bind "$0" "$1" && shift && exec "$@"`
	return exec.Command("unshare", append([]string{"-m", "sh", "-c", script, home, me.HomeDir}, argv...)...)
}

func startDropbear(ts *testscript.TestScript, _ bool, args []string) {
	port, dir := freePort(ts), ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(exec.Command("dropbearkey", "-t", "ed25519", "-f", filepath.Join(dir, "key")).Run())
	daemon(ts, port, inHome(ts, "dropbear", "-F", "-E", "-s", "-p", "127.0.0.1:"+port, "-r", filepath.Join(dir, "key"), "-P", filepath.Join(dir, "pid")))
	describe(ts, args[0], port, hostKeyOf(ts, port))
}

// startTinySSHD serves every connection with a process of its own, as inetd would.
func startTinySSHD(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(exec.Command("tinysshd-makekey", "-q", dir).Run())
	port := serve(ts, func(conn *net.TCPConn) {
		socket, err := conn.File()
		if err != nil {
			return
		}
		defer socket.Close()
		cmd := inHome(ts, "tinysshd", dir)
		cmd.Stdin, cmd.Stdout = socket, socket
		if cmd.Start() == nil {
			go func() { _ = cmd.Wait() }()
		}
	})
	describe(ts, args[0], port, hostKeyOf(ts, port))
}

// serve accepts connections until the script ends.
func serve(ts *testscript.TestScript, handle func(*net.TCPConn)) (port string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	ts.Check(err)
	ts.Defer(func() { l.Close() })
	go accept(l, func(conn net.Conn) { handle(conn.(*net.TCPConn)) })
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// accept takes connections until the listener is closed.
func accept(l net.Listener, handle func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			handle(conn)
		}()
	}
}

func startSilent(ts *testscript.TestScript, _ bool, args []string) {
	identity(ts)
	describe(ts, args[0], serve(ts, func(*net.TCPConn) { time.Sleep(time.Minute) }), "")
}

func startOther(ts *testscript.TestScript, _ bool, args []string) {
	identity(ts)
	count, err := os.Create(ts.MkAbs(args[0] + ".connections"))
	ts.Check(err)
	ts.Defer(func() { count.Close() })
	describe(ts, args[0], serve(ts, func(conn *net.TCPConn) {
		_, _ = fmt.Fprintf(count, "%s\n", time.Now())
		_, _ = fmt.Fprintf(conn, "%s\r\n", args[1])
		// What has come and is not read would make it a reset, which takes the text along.
		_ = conn.CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}), "")
}

func startDeaf(ts *testscript.TestScript, _ bool, args []string) {
	identity(ts)
	describe(ts, args[0], freePort(ts), "")
}

func startFickle(ts *testscript.TestScript, _ bool, args []string) {
	count, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	var made atomic.Int64
	startThrough(ts, args, func(up, down io.Writer) (io.Writer, io.Writer) {
		if made.Add(1) > count {
			return nil, nil
		}
		return up, down
	})
}

// startThrough is a way to a server on which what passes goes through writers of ours;
// nil hangs up.
func startThrough(ts *testscript.TestScript, args []string, through func(up, down io.Writer) (io.Writer, io.Writer)) {
	server := ts.Getenv(strings.ToUpper(args[1]) + "_PORT")
	port := serve(ts, func(conn *net.TCPConn) { pass(conn, server, through) })
	describe(ts, args[0], port, hostKeyOf(ts, server))
}

// pass makes one way of a connection and one to the server at a port.
func pass(conn net.Conn, server string, through func(up, down io.Writer) (io.Writer, io.Writer)) {
	behind, err := net.Dial("tcp", "127.0.0.1:"+server)
	if err != nil {
		return
	}
	defer behind.Close()
	up, down := through(behind, conn)
	if up == nil {
		return
	}
	go func() { _, _ = io.Copy(up, struct{ io.Reader }{conn}); behind.(*net.TCPConn).CloseWrite() }()
	_, _ = io.Copy(down, struct{ io.Reader }{behind})
}

// writerFunc is a function that writes.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }

func startLate(ts *testscript.TestScript, _ bool, args []string) {
	first, err := strconv.Atoi(args[2])
	ts.Check(err)
	delay, err := time.ParseDuration(args[3])
	ts.Check(err)
	startThrough(ts, args, func(up, down io.Writer) (io.Writer, io.Writer) {
		passed := 0
		return up, writerFunc(func(b []byte) (int, error) {
			if passed >= 0 && passed >= first {
				time.Sleep(delay)
				passed = -1
			} else if passed >= 0 {
				passed += len(b)
			}
			return down.Write(b)
		})
	})
}

func startSwallow(ts *testscript.TestScript, _ bool, args []string) {
	largest, err := strconv.Atoi(args[2])
	ts.Check(err)
	startThrough(ts, args, func(up, down io.Writer) (io.Writer, io.Writer) {
		lost := false
		return writerFunc(func(b []byte) (int, error) {
			if lost = lost || len(b) > largest; lost {
				return len(b), nil
			}
			return up.Write(b)
		}), down
	})
}

func startNarrow(ts *testscript.TestScript, _ bool, args []string) {
	rate, err := strconv.ParseFloat(args[2], 64)
	ts.Check(err)
	server := ts.Getenv(strings.ToUpper(args[1]) + "_PORT")
	r, err := relay.To("127.0.0.1:"+server, relay.Options{Path: relay.Path{Rate: rate}})
	ts.Check(err)
	ts.Defer(func() { r.Close() })
	describe(ts, args[0], strconv.Itoa(r.Port()), hostKeyOf(ts, server))
}

func holdConnection(ts *testscript.TestScript, _ bool, args []string) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+ts.Getenv(strings.ToUpper(args[0])+"_PORT"))
	ts.Check(err)
	ts.Defer(func() { conn.Close() })
}

// slay kills a process of the script's sshpace by name, when there is one.
func slay(ts *testscript.TestScript, _ bool, args []string) {
	if !waittest.Comes(func() bool {
		for pid, p := range processes() {
			if p.name == args[0] && strings.Contains(p.args, args[1]) && descends(pid, ts.MkAbs(".")) {
				ts.Logf("kill %d: %s", pid, p.args)
				ts.Check(syscall.Kill(pid, syscall.SIGKILL))
				return true
			}
		}
		return false
	}) {
		ts.Fatalf("no process %s %s", args[0], args[1])
	}
}

// descends reports whether a process was started, by whatever way, by an sshpace
// that runs in the directory of this script: other scripts run at the same time.
func descends(pid int, dir string) bool {
	for pid > 1 {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		cwd, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
		if strings.TrimSpace(string(comm)) == "sshpace" && cwd == dir {
			return true
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return false
		}
		_, rest, _ := strings.Cut(string(stat), ") ") // proc_pid_stat(5): pid (comm) state ppid
		fields := strings.Fields(rest)
		if pid, err = strconv.Atoi(fields[1]); err != nil {
			return false
		}
	}
	return false
}

type process struct {
	name, args string
}

// processes lists what runs on this machine.
func processes() map[int]process {
	list := map[int]process{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		args, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err != nil || len(args) == 0 {
			continue
		}
		comm, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "comm"))
		list[pid] = process{strings.TrimSpace(string(comm)), strings.ReplaceAll(string(args), "\x00", " ")}
	}
	return list
}

func awaitGone(ts *testscript.TestScript, _ bool, args []string) {
	var left []string
	if !waittest.Comes(func() bool {
		left = nil
		for _, p := range processes() {
			if strings.Contains(p.args, args[0]) {
				left = append(left, p.args)
			}
		}
		return len(left) == 0
	}) {
		ts.Fatalf("still running: %q", left)
	}
}

// awaitFile waits until a file holds a text.
func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	if !waittest.Comes(func() bool {
		text, err := os.ReadFile(ts.MkAbs(args[0]))
		return err == nil && strings.Contains(string(text), args[1])
	}) {
		ts.Fatalf("%s never held %q", args[0], args[1])
	}
}

// eventually runs a program again and again until it ends well: what a busy machine may
// hide once it shows in the end.
func eventually(ts *testscript.TestScript, _ bool, args []string) {
	var err error
	if !waittest.Comes(func() bool { err = ts.Exec(args[0], args[1:]...); return err == nil }) {
		ts.Fatalf("it never ended well: %v", err)
	}
}

// typeWhenAsked runs $1 on a terminal and types $0 when it shows $2: what is typed before
// is thrown away by some.
const typeWhenAsked = `rm -f keys screen; mkfifo keys; script -qec "$1" /dev/null <keys >screen & exec 3>keys
until grep -q "$2" screen; do sleep 0.05; done; echo "$0" >&3; wait $!; r=$?; cat screen; exit $r`

func typing(ts *testscript.TestScript, neg bool, args []string) {
	answer, text, command := args[0], args[1], args[2]
	if err := ts.Exec("sh", "-c", typeWhenAsked, answer, command, text); (err != nil) != neg {
		ts.Fatalf("%s: %v", command, err)
	}
}

func mountTmpfs(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	flags := uintptr(0)
	if len(args) > 2 {
		flags = syscall.MS_RDONLY
	}
	ts.Check(syscall.Mount("tmpfs", dir, "tmpfs", flags, "size="+args[1]))
	ts.Defer(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
}
