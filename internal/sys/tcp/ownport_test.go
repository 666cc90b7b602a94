package tcp

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
)

func listen(t *testing.T) *OwnListener {
	t.Helper()
	l, err := ListenOwn()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// greet sends a line to whoever is accepted.
func greet(t *testing.T, l *OwnListener) {
	t.Helper()
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, "banner\n")
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); done.Wait() })
}

// ours connects and returns what is said to us.
func ours(t *testing.T, l *OwnListener) string {
	t.Helper()
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second))
	text, _ := io.ReadAll(conn)
	return string(text)
}

var ways = map[string]ownerFunc{"sock_diag": diagnosed, "/proc/net/tcp": listed}

func TestOurOwnConnectionsAreAccepted(t *testing.T) {
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			l.owner = way
			greet(t, l)
			for range 50 {
				if got := ours(t, l); got != "banner\n" {
					t.Fatalf("we were told %q", got)
				}
			}
		})
	}
}

// Another user gets no byte, not once in hundreds of tries, while our own connections come and go.
func TestForeignersGetNothing(t *testing.T) {
	if !waittest.AsRoot(t) {
		return
	}
	tries := map[string]int{"sock_diag": 300, "/proc/net/tcp": 30} // a read of the table takes milliseconds
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			l := listen(t)
			l.owner = way
			greet(t, l)
			script := `for i in $(seq "$1"); do exec 3<>/dev/tcp/127.0.0.1/"$0" && IFS= read -r -t 20 -u 3 line && echo "got $line"; done 2>/dev/null; echo end`
			cmd := exec.Command("bash", "-c", script, fmt.Sprint(l.Addr().(*net.TCPAddr).Port), fmt.Sprint(tries[name]))
			cmd.Dir = "/"
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
			var out strings.Builder
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			var busy sync.WaitGroup
			busy.Go(func() {
				for {
					select {
					case <-ended:
						return
					default:
						if got := ours(t, l); got != "banner\n" {
							t.Errorf("we were told %q", got)
						}
					}
				}
			})
			err := cmd.Wait()
			close(ended)
			busy.Wait()
			if err != nil || out.String() != "end\n" {
				t.Errorf("%d times a foreigner was answered, %v", strings.Count(out.String(), "got"), err)
			}
		})
	}
}

// The owner of a connection that is closed already is not known: the kernel would call it root's.
func TestAbandonedConnectionHasNoOwner(t *testing.T) {
	for name, way := range ways {
		l := listen(t)
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		served, err := l.AcceptTCP()
		if err != nil {
			t.Fatal(err)
		}
		defer served.Close()
		local, remote := conn.LocalAddr().(*net.TCPAddr), conn.RemoteAddr().(*net.TCPAddr)
		if uid, found := way(local, remote); !found || uid != os.Getuid() {
			t.Errorf("%s: the owner is %d, %v", name, uid, found)
		}
		conn.Close()
		if uid, found := way(local, remote); found {
			t.Errorf("%s: an abandoned connection belongs to %d", name, uid)
		}
		if uid, found := way(local, &net.TCPAddr{IP: remote.IP, Port: 1}); found {
			t.Errorf("%s: a connection that does not exist belongs to %d", name, uid)
		}
	}
}

// A kernel that does not know even our own socket is not asked about others.
func TestWithoutKnowledgeAllAreAccepted(t *testing.T) {
	l := listen(t)
	l.owner = nil
	greet(t, l)
	if got := ours(t, l); got != "banner\n" {
		t.Errorf("we were told %q", got)
	}
}

func TestOwnerInTable(t *testing.T) {
	const row = "   0: 0100007F:9C40 0100007F:0016 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1\n"
	loop := net.IPv4(127, 0, 0, 1)
	for text, want := range map[string]int{
		row: 1000, "": -1, row[:40]: -1, strings.Replace(row, "1000", "me", 1): -1, strings.Replace(row, "4711", "0", 1): -1,
	} {
		uid, found := owner(text, &net.TCPAddr{IP: loop, Port: 40000}, &net.TCPAddr{IP: loop, Port: 22})
		if found != (want >= 0) || found && uid != want {
			t.Errorf("owner in %q: %d, %v", text, uid, found)
		}
	}
}

// What is no answer to the question, is none.
func TestAnswers(t *testing.T) {
	loop := net.IPv4(127, 0, 0, 1)
	request := diagRequest(&net.TCPAddr{IP: loop, Port: 40000}, &net.TCPAddr{IP: loop, Port: 22})
	whole := make([]byte, answerSize)
	copy(whole[answerID:], request[requestID:])
	binary.NativeEndian.PutUint16(whole[4:], sockDiagByFamily)
	whole[answerState] = 1
	binary.NativeEndian.PutUint32(whole[answerUID:], 1000)
	binary.NativeEndian.PutUint32(whole[answerInode:], 4711)
	if uid, found := diagOwner(whole, request, false); !found || uid != 1000 {
		t.Errorf("owner %d, %v", uid, found)
	}
	change := func(i int, value byte) []byte {
		changed := append([]byte(nil), whole...)
		changed[i] = value
		return changed
	}
	for name, answer := range map[string][]byte{
		"cut off": whole[:answerSize-1], "empty": nil, "an error": change(4, unixError), "a listener": change(answerState, listening),
		"another port": change(answerID+1, 1), "another address": change(answerID+sockidTarget, 10),
	} {
		if uid, found := diagOwner(answer, request, false); found {
			t.Errorf("%s: owner %d", name, uid)
		}
	}
}

const unixError = 2 // NLMSG_ERROR
