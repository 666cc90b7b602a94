package login

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/record"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// sshTo is the command line of the installed ssh to a port.
func sshTo(t *testing.T, user, key string, port int) ArgvFunc {
	t.Helper()
	known := filepath.Join(t.TempDir(), "known")
	return func(log string) []string {
		return []string{"ssh", "-vv", "-E", log, "-F", "none", "-i", key, "-o", "IdentityAgent=none", "-o", "BatchMode=yes", "-o", "HostKeyAlias=x",
			"-o", "StrictHostKeyChecking=accept-new", "-o", "UserKnownHostsFile=" + known, "-p", strconv.Itoa(port), "--", user + "@127.0.0.1", "true"}
	}
}

// TestPhases: the phases of a login with the real programs are all there, in order, and add up to
// the login.
func TestPhases(t *testing.T) {
	s := sshtest.StartSshd(t)
	l, err := Watch(context.Background(), t.TempDir(), sshTo(t, s.User, s.Key, s.Port), nil)
	if err != nil {
		t.Fatal(err)
	}
	var sum time.Duration
	for _, span := range l.Spans {
		sum += span.WallNS
	}
	if sum != l.Whole {
		t.Errorf("phases of %v make a login of %v", sum, l.Whole)
	}
	if len(l.Spans) != len(milestones)+1 {
		t.Errorf("%d phases of %d: %v", len(l.Spans), len(milestones)+1, l.Spans)
	}
	if l.ClientCPU <= 0 || l.ClientCPU > l.Whole*2 {
		t.Errorf("the client computed for %v of %v", l.ClientCPU, l.Whole)
	}
}

// TestCommandPhase: a slow command is told from a slow login.
func TestCommandPhase(t *testing.T) {
	s := sshtest.StartSshd(t, "ForceCommand sleep 0.4")
	waittest.Until(t, "a command that takes as long as it does", func() bool { // its start may be seen late
		l, err := Watch(context.Background(), t.TempDir(), sshTo(t, s.User, s.Key, s.Port), nil)
		if err != nil {
			t.Fatal(err)
		}
		return l.Span(record.PhaseCommand)+l.Span(record.PhaseExec) >= 350*time.Millisecond
	})
}

// stuck is a server that says something and then nothing.
func stuck(t *testing.T, words string) int {
	t.Helper()
	return sshtest.Answering(t, func(c net.Conn) { io.WriteString(c, words); io.Copy(io.Discard, c) }).Port
}

// TestStuckServer: a server that stops to answer is given up in time, and the phase is named.
func TestStuckServer(t *testing.T) {
	key, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	for words, want := range map[string]Phase{"": record.PhaseVersion, "SSH-2.0-OpenSSH_9.2\r\n": record.PhaseKexInit} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			isStuck(t, want, sshTo(t, "tester", key, stuck(t, words)))
		})
	}
}

// frozen is a way to a server on which nothing comes any more after so many of the packets that it
// sends in the clear: KEXINIT, its half of the key exchange, NEWKEYS.
func frozen(t *testing.T, server, packets int) int {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	freeze := func(down net.Conn) {
		defer down.Close()
		up, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", server))
		if err != nil {
			return
		}
		defer up.Close()
		all.Go(func() {
			in := bufio.NewReader(up)
			line, _ := in.ReadString('\n')
			_, _ = io.WriteString(down, line)
			for range packets {
				head := make([]byte, 4)
				_, _ = io.ReadFull(in, head)
				_, _ = down.Write(head)
				_, _ = io.CopyN(down, in, int64(binary.BigEndian.Uint32(head)))
			}
		})
		_, _ = io.Copy(up, down) // until ssh gives up
	}
	all.Go(func() {
		for {
			down, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { freeze(down) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return l.Addr().(*net.TCPAddr).Port
}

// TestStuckInKeyExchange: the same in the middle of a key exchange with the real sshd, and right
// behind it.
func TestStuckInKeyExchange(t *testing.T) {
	s := sshtest.StartSshd(t)
	for packets, want := range []Phase{record.PhaseKexInit, record.PhaseKex, record.PhaseNewKeys, record.PhaseService} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			isStuck(t, want, sshTo(t, s.User, s.Key, frozen(t, s.Port, packets)))
		})
	}
}

// TestStuckLater: the same for servers that stop after the key exchange.
func TestStuckLater(t *testing.T) {
	key, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
	for want, server := range map[Phase]func(held func()) *sshtest.Server{
		record.PhaseQuery:   func(held func()) *sshtest.Server { return &sshtest.Server{Hold: held} },
		record.PhaseChannel: func(func()) *sshtest.Server { return &sshtest.Server{IgnoreSession: true} },
		record.PhaseExec:    func(func()) *sshtest.Server { return &sshtest.Server{IgnoreExec: true} },
		record.PhaseCommand: func(held func()) *sshtest.Server {
			return &sshtest.Server{Exec: func(*sshtest.Session) { held() }}
		},
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			over := make(chan struct{})
			s := server(func() { <-over }).Start(t)
			t.Cleanup(func() { close(over) })
			isStuck(t, want, sshTo(t, "tester", key, s.Port()))
		})
	}
}

// isStuck carries out a login that does not get beyond a phase.
func isStuck(t *testing.T, want Phase, argv ArgvFunc) {
	t.Helper()
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		_, err := Watch(ctx, t.TempDir(), argv, nil)
		var failed *FailedError
		if errors.As(err, &failed) && failed.During == want && failed.Late {
			return nil
		}
		return fmt.Errorf("got %w", err)
	})
}

// TestDenied: a refused login is an error with ssh's words, at its phase.
func TestDenied(t *testing.T) {
	s := sshtest.StartSshd(t)
	other, _ := sshtest.WriteKey(t, t.TempDir(), "other", "")
	_, err := Watch(context.Background(), t.TempDir(), sshTo(t, s.User, other, s.Port), nil)
	var failed *FailedError
	if !errors.As(err, &failed) || failed.Late || failed.Said != s.User+"@127.0.0.1: Permission denied (publickey)." {
		t.Errorf("got %v", err)
	}
}

// TestCutRelay: a connection that is cut in the middle is an error, not a hang.
func TestCutRelay(t *testing.T) {
	s := sshtest.StartSshd(t, "ForceCommand sleep 60")
	var bytes atomic.Int64
	var once sync.Once
	middle := make(chan struct{})
	r, err := relay.To(fmt.Sprintf("127.0.0.1:%d", s.Port), relay.Options{Watch: func(seen relay.Seen) {
		if bytes.Add(int64(len(seen.Data))) > 1000 { // in the middle of the key exchange
			once.Do(func() { close(middle) })
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() { <-middle; r.Cut() }()
	began := time.Now()
	if _, err := Watch(context.Background(), t.TempDir(), sshTo(t, s.User, s.Key, r.Port()), nil); err == nil || time.Since(began) > time.Minute {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// TestStalls: the waits of an OpenSSH login on a fast link are found and named. On a busy machine
// one of them may be longer than it is of itself.
func TestStalls(t *testing.T) {
	s := sshtest.StartSshd(t)
	waittest.Until(t, "a login that stalled", func() bool {
		var traffic Traffic
		r, err := relay.To(fmt.Sprintf("127.0.0.1:%d", s.Port), relay.Options{Watch: traffic.Watch})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Watch(context.Background(), t.TempDir(), sshTo(t, s.User, s.Key, r.Port()), nil)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		w := traffic.Wire()
		if w.Up < 1000 || w.Down < 1000 {
			t.Errorf("%d bytes up, %d down", w.Up, w.Down)
		}
		return len(w.Stalls) > 0
	})
}

// TestStallBounds: only a wait as long as a delayed acknowledgement, between two packets of one
// side, is one.
func TestStallBounds(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	for _, c := range []struct {
		second relay.Direction
		ms     int
		want   int
	}{{relay.Up, 44, 1}, {relay.Up, 5, 0}, {relay.Up, 500, 0}, {relay.Down, 44, 0}} {
		var traffic Traffic
		traffic.Watch(relay.Seen{Dir: relay.Up, Arrived: at(0), Left: at(1), Data: []byte{1}})
		traffic.Watch(relay.Seen{Dir: c.second, Arrived: at(c.ms), Left: at(c.ms), Data: []byte{1}})
		if got := traffic.Wire().Stalls; len(got) != c.want {
			t.Errorf("%v after %d ms: %v", c.second, c.ms, got)
		}
	}
}

// TestTrafficOfOneLogin: what an older connection still sends counts for nothing.
func TestTrafficOfOneLogin(t *testing.T) {
	var traffic Traffic
	for _, conn := range []int{1, 2, 1, 2} {
		traffic.Watch(relay.Seen{Conn: conn, Dir: relay.Up, Data: []byte{1}})
	}
	if w := traffic.Wire(); w.Up != 2 {
		t.Errorf("%d bytes of the newer connection", w.Up)
	}
}

// TestReason: what ssh means for its user is why, not what it tells of itself at the end.
func TestReason(t *testing.T) {
	const closed = "Connection to 192.0.2.1 closed by remote host."
	log := strings.Join([]string{
		"Authenticated to web1 ([192.0.2.1]:22) using \"publickey\".", "debug1: channel 0: free", closed,
		"debug3: channel 0: status: The following connections are open:", "  #0 client-session (t3 [session] nr0 i0/0 o0/0)",
		"Transferred: sent 3000, received 2900 bytes, in 0.0 seconds", "Bytes per second: sent 337985.8, received 276822.7",
	}, "\n")
	l := &Login{Lines: stamped(strings.NewReader(log), time.Now())}
	if got := l.reason(); got != closed {
		t.Errorf("%q, want %q", got, closed)
	}
}
