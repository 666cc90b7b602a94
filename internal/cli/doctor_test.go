package cli_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/sys/unix"

	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// paste runs the lines that a report of doctor (JSON) says to do, those of the
// checks that are named, each of which must be there:
//
//	paste REPORT CHECK...
func paste(ts *testscript.TestScript, _ bool, args []string) {
	var report struct {
		Findings []struct{ Check, Do string }
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &report))
	for _, check := range args[1:] {
		i := slices.IndexFunc(report.Findings, func(f struct{ Check, Do string }) bool { return f.Check == check })
		if i < 0 {
			ts.Fatalf("%s is not among %v", check, report.Findings)
		}
		ts.Check(ts.Exec("sh", "-c", report.Findings[i].Do))
	}
}

// startFar is a way to a server that takes so long each way:
//
//	far NAME SERVER DELAY
func startFar(ts *testscript.TestScript, _ bool, args []string) {
	delay, err := time.ParseDuration(args[2])
	ts.Check(err)
	server := ts.Getenv(strings.ToUpper(args[1]) + "_PORT")
	r, err := relay.To("127.0.0.1:"+server, relay.Options{Path: relay.Path{Delay: delay}})
	ts.Check(err)
	ts.Defer(func() { r.Close() })
	describe(ts, args[0], r.Port(), hostKeyOf(ts, server))
}

// startAgent is an agent with the script's key, at $WORK/NAME, that takes so long for a
// signature, as one does whose key waits for a touch:
//
//	agent NAME DELAY
func startAgent(ts *testscript.TestScript, _ bool, args []string) {
	delay, err := time.ParseDuration(args[1])
	ts.Check(err)
	identity(ts)
	key, err := ssh.ParseRawPrivateKey([]byte(ts.ReadFile("user_key")))
	ts.Check(err)
	keys := slowAgent{agent.NewKeyring(), delay}
	ts.Check(keys.Add(agent.AddedKey{PrivateKey: key}))
	l, err := net.Listen("unix", ts.MkAbs(args[0]))
	ts.Check(err)
	sshtest.Answer(inScript{script: ts}, l, func(conn net.Conn) { _ = agent.ServeAgent(keys, conn) })
}

// slowAgent takes its time for every signature.
type slowAgent struct {
	agent.Agent
	delay time.Duration
}

func (a slowAgent) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	time.Sleep(a.delay)
	return a.Agent.Sign(key, data)
}

// serveSlowNames is a program: a name server on 127.0.0.1 that takes its time for every answer. All
// names have the address 127.0.0.1, which has a name.
func serveSlowNames() {
	delay, err := time.ParseDuration(os.Args[1])
	if err != nil {
		panic(err)
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		panic(err)
	}
	for {
		question := make([]byte, 512)
		n, from, err := conn.ReadFrom(question)
		if err != nil {
			return
		}
		time.AfterFunc(delay, func() { _, _ = conn.WriteTo(nameReply(question[:n]), from) })
	}
}

// listenDeaf is a program: an address and port whose queue is full, so that who connects gets no
// answer (listen(2)).
func listenDeaf() {
	at, err := netip.ParseAddrPort(os.Args[1])
	if err != nil {
		panic(err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	address := &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()}
	if err := errors.Join(err, unix.Bind(fd, address), unix.Listen(fd, 0)); err != nil {
		panic(err)
	}
	for {
		if _, err := net.DialTimeout("tcp", at.String(), 200*time.Millisecond); err != nil {
			break
		}
	}
	fmt.Println("deaf")
	time.Sleep(time.Hour)
}

// startBacklog is a way to a server whose queue of connections is full for the first
// packet of each connection, so that its sender has to wait until it sends it again, and
// has room for the second one:
//
//	backlog NAME SERVER
func startBacklog(ts *testscript.TestScript, _ bool, args []string) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	ts.Check(errors.Join(err, unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}), unix.Listen(fd, 0)))
	file := os.NewFile(uintptr(fd), "queue")
	l, err := net.FileListener(file)
	ts.Check(errors.Join(err, file.Close()))
	done := make(chan struct{})
	ts.Defer(func() { close(done); l.Close() })
	at, server := l.Addr().(*net.TCPAddr), ts.Getenv(strings.ToUpper(args[1])+"_PORT")
	describe(ts, args[0], at.Port, hostKeyOf(ts, server))
	plain := func(up, down io.Writer) (io.Writer, io.Writer) { return up, down }
	go func() {
		for {
			full, err := net.Dial("tcp", at.String())
			if err != nil {
				return
			}
			for !knocks(at.Port) {
				select {
				case <-done:
					full.Close()
					return
				case <-time.After(100 * time.Millisecond): // it waits for a second, and to look takes long
				}
			}
			full.Close()
			if ours, err := l.Accept(); err == nil {
				ours.Close()
			}
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() { pass(conn, server, plain); conn.Close() }()
		}
	}()
}

// knocks reports whether anybody on this machine waits for the answer of a port (proc(5): the state
// 02 is TCP_SYN_SENT).
func knocks(port int) bool {
	text, _ := os.ReadFile("/proc/net/tcp")
	return regexp.MustCompile(fmt.Sprintf(`(?m)^ *\d+: \S+ 0100007F:%04X 02 `, port)).Match(text)
}

// connectTo is a program: an ADDRESS and PORT at the other end of standard input and output.
func connectTo() {
	conn, err := net.Dial("tcp", net.JoinHostPort(os.Args[1], os.Args[2]))
	if err != nil {
		panic(err)
	}
	go func() { _, _ = io.Copy(conn, os.Stdin) }()
	_, _ = io.Copy(os.Stdout, conn)
}

// nameReply answers one question (RFC 1035 section 4.1).
func nameReply(q []byte) []byte {
	const address, pointer = 1, 12
	end := 12
	for end < len(q) && q[end] != 0 {
		end += 1 + int(q[end])
	}
	kind := binary.BigEndian.Uint16(q[end+1:])
	out := slices.Clone(q[:end+5])
	out[2], out[3] = 0x84, 0x80
	copy(out[6:12], make([]byte, 6))
	data := map[uint16][]byte{address: {127, 0, 0, 1}, pointer: []byte("\x04slow\x04test\x00")}[kind]
	if data == nil {
		return out
	}
	out[7] = 1
	out = append(out, 0xc0, 12, 0, byte(kind), 0, 1, 0, 0, 0, 60, 0, byte(len(data)))
	return append(out, data...)
}

// alone runs a shell script of the test in a network and file systems of its own, where name
// servers, routes and PAM can be planted. It needs root.
func alone(ts *testscript.TestScript, _ bool, args []string) {
	network, err := filepath.Abs("testdata/network.sh")
	ts.Check(err)
	cmd := exec.Command("unshare", "-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", "sh", "-eux", network, args[0])
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // and all that it started with it
	runtime.LockOSThread()                                             // a thread that a relay of another script had would end before it
	defer runtime.UnlockOSThread()
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = append(os.Environ(), "WORK="+cmd.Dir, "HOME="+cmd.Dir, "PATH="+ts.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	ts.Logf("%s", out)
	ts.Check(err)
}
