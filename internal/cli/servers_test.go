package cli_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

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
//	other NAME TEXT            a port that says TEXT and hangs up; it counts in NAME.connections
//	deaf NAME                  a port on which nothing listens
//	fickle NAME SERVER COUNT   a way to SERVER that hangs up after COUNT connections
//	narrow NAME SERVER RATE    a way to SERVER that carries so many bytes per second
//	far NAME SERVER DELAY      a way to SERVER that takes so long each way
//	late NAME SERVER N DELAY   a way to SERVER that once delays its bytes after N bytes
//	swallow NAME SERVER MTU    a way to SERVER that loses larger pieces, and all after them
//	backlog NAME SERVER        a way to SERVER without room for a connection's first packet
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
	five, err := filepath.Abs("../legacy/testdata/five-machines.txt")
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

// checkLeftovers fails a script that leaves a process or a private directory of sshpace behind. It
// runs last, when the script's own servers are gone.
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

// inScript lets what sshtest starts for a test live as long as a script does.
type inScript struct {
	testing.TB
	script *testscript.TestScript
}

func (s inScript) Helper()                           {}
func (s inScript) Cleanup(f func())                  { s.script.Defer(f) }
func (s inScript) Fatal(args ...any)                 { s.script.Fatalf("%s", fmt.Sprint(args...)) }
func (s inScript) Fatalf(format string, args ...any) { s.script.Fatalf(format, args...) }

func (s inScript) TempDir() string {
	dir, err := os.MkdirTemp(s.script.Getenv("TMPDIR"), "server-")
	s.script.Check(err)
	return dir
}

// identity makes the user key of the script once.
func identity(ts *testscript.TestScript) (public string) {
	if text, err := os.ReadFile(ts.MkAbs("user_key.pub")); err == nil {
		return string(text)
	}
	_, key := sshtest.WriteKey(inScript{script: ts}, ts.MkAbs("."), "user_key", "")
	return sshtest.AuthorizedLine(key)
}

// describe adds a host to the script's ssh_config and its key to known_hosts.
func describe(ts *testscript.TestScript, name string, port int, hostKey string) {
	appendTo(ts, "ssh_config", fmt.Sprintf(`Host %s
  HostName 127.0.0.1
  Port %d
  HostKeyAlias %s
  UserKnownHostsFile %s
  IdentityFile %s
  IdentitiesOnly yes
  IdentityAgent none
`, name, port, name, ts.MkAbs("known_hosts"), ts.MkAbs("user_key")))
	if hostKey != "" {
		appendTo(ts, "known_hosts", name+" "+strings.TrimSpace(hostKey)+"\n")
	}
	ts.Setenv(strings.ToUpper(name)+"_PORT", strconv.Itoa(port))
}

func appendTo(ts *testscript.TestScript, file, text string) {
	f, err := os.OpenFile(ts.MkAbs(file), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	ts.Check(err)
	_, err = f.WriteString(text)
	ts.Check(err)
	ts.Check(f.Close())
}

func startSSHD(ts *testscript.TestScript, _ bool, args []string) {
	home := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(home, 0o700))
	s := sshtest.StartSshd(inScript{script: ts}, append(args[1:], "SetEnv HOME="+home)...)
	ts.Check(os.WriteFile(filepath.Join(s.Dir, "authorized_keys"), []byte(identity(ts)), 0o600))
	describe(ts, args[0], s.Port, sshtest.AuthorizedLine(s.HostKey))
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

func startDropbear(ts *testscript.TestScript, _ bool, args []string) {
	describeInetd(ts, args[0], sshtest.StartDropbear(inScript{script: ts}))
}

func startTinySSHD(ts *testscript.TestScript, _ bool, args []string) {
	describeInetd(ts, args[0], sshtest.StartTinySSH(inScript{script: ts}))
}

func describeInetd(ts *testscript.TestScript, name string, s *sshtest.Inetd) {
	ts.Check(os.WriteFile(filepath.Join(s.Home, ".ssh", "authorized_keys"), []byte(identity(ts)), 0o600))
	describe(ts, name, s.Port, hostKeyOf(ts, strconv.Itoa(s.Port)))
}

// serve does the same with every connection to a port.
func serve(ts *testscript.TestScript, handle func(net.Conn)) (port int) {
	return sshtest.Answering(inScript{script: ts}, handle).Port
}

func startSilent(ts *testscript.TestScript, _ bool, args []string) {
	identity(ts)
	describe(ts, args[0], serve(ts, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }), "")
}

func startOther(ts *testscript.TestScript, _ bool, args []string) {
	identity(ts)
	count, err := os.Create(ts.MkAbs(args[0] + ".connections"))
	ts.Check(err)
	ts.Defer(func() { count.Close() })
	describe(ts, args[0], serve(ts, func(conn net.Conn) {
		_, _ = fmt.Fprintf(count, "%s\n", time.Now())
		_, _ = fmt.Fprintf(conn, "%s\r\n", args[1])
		// What has come and is not read would make it a reset, which takes the text along.
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	}), "")
}

func startDeaf(ts *testscript.TestScript, _ bool, args []string) {
	identity(ts)
	port, err := sshtest.FreePort()
	ts.Check(err)
	describe(ts, args[0], port, "")
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

// startThrough is a way to a server on which what passes goes through writers of ours; nil hangs
// up.
func startThrough(ts *testscript.TestScript, args []string, through func(up, down io.Writer) (io.Writer, io.Writer)) {
	server := ts.Getenv(strings.ToUpper(args[1]) + "_PORT")
	port := serve(ts, func(conn net.Conn) { pass(conn, server, through) })
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
	describe(ts, args[0], r.Port(), hostKeyOf(ts, server))
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

// descends reports whether a process was started, by whatever way, by an sshpace that runs in the
// directory of this script: other scripts run at the same time.
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

// eventually runs a program again and again until it ends well: what a busy machine may hide once
// it shows in the end.
func eventually(ts *testscript.TestScript, _ bool, args []string) {
	var err error
	if !waittest.Comes(func() bool { err = ts.Exec(args[0], args[1:]...); return err == nil }) {
		ts.Fatalf("it never ended well: %v", err)
	}
}

// typeWhenAsked runs $1 on a terminal and types $0 when it shows $2: what is typed before is thrown
// away by some.
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
