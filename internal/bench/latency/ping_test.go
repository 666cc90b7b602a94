package latency

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/waittest"
	"sshpace/internal/bench/bed"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// clientTo is the installed ssh to a port of a test server.
func clientTo(t *testing.T, s *sshtest.Sshd, port int) bed.Bed {
	t.Helper()
	ssh, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(known, []byte("x "+sshtest.AuthorizedLine(s.HostKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	return bed.Bed{SSH: ssh, Connect: 2 * time.Minute, Destination: openssh.Destination{Host: "127.0.0.1", Flags: conf.Flags{
		Config: "none", Port: uint16(port), User: s.User, Identities: []string{s.Key}, Settings: []string{"IdentityAgent=none", "HostKeyAlias=x", "UserKnownHostsFile=" + known},
	}}}
}

func opened(t *testing.T, b bed.Bed, name string) *Lane {
	t.Helper()
	l, err := Open(t.Context(), b, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l
}

// pinged carries out a run and returns the echoes.
func pinged(t *testing.T, lanes []*Lane, o Options) (echoes []Echo) {
	t.Helper()
	if _, err := Run(t.Context(), lanes, o, func(e Echo) { echoes = append(echoes, e) }); err != nil {
		t.Fatal(err)
	}
	return echoes
}

// TestRoundTrip: over a path of 40 ms a byte takes that long, with a terminal and without, beside a
// transfer and not.
func TestRoundTrip(t *testing.T) {
	s := sshtest.StartSshd(t)
	r, err := relay.To(fmt.Sprintf("127.0.0.1:%d", s.Port), relay.Options{Path: relay.Path{Delay: 20 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	c := clientTo(t, s, r.Port())
	waittest.Until(t, "an echo that nothing else holds up", func() bool { // as a busy machine may
		lanes := []*Lane{opened(t, c, terminal), opened(t, c, pipe)}
		load, err := OpenLoad(t.Context(), c, Download)
		if err != nil {
			t.Fatal(err)
		}
		defer load.Close()
		echoes := pinged(t, lanes, Options{Interval: 20 * time.Millisecond, Count: 15, Grace: 10 * time.Second, Load: load})
		all := summarize([]string{terminal, pipe}, echoes)
		if len(all) != 4 || load.Rate() < 100_000 {
			t.Fatalf("%d summaries, %.0f bytes/s: %+v", len(all), load.Rate(), all)
		}
		late := false
		for _, s := range all {
			least := time.Duration(s.Min)
			if s.Back != s.Sent || least < 40*time.Millisecond {
				t.Errorf("%s (loaded %v): %d of %d came back, the first after %v", s.Lane, s.Loaded, s.Back, s.Sent, least)
			}
			late = late || s.Sent < 8 || least > 70*time.Millisecond
		}
		return !late
	})
}

// TestStallDelaysAll: a stall of 600 ms shows in all bytes that were to be sent meanwhile, not in
// one.
func TestStallDelaysAll(t *testing.T) {
	s := sshtest.StartSshd(t)
	l := opened(t, clientTo(t, s, s.Port), pipe)
	pid := l.Process.Pid
	late, stall := 0, sync.OnceFunc(func() {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		time.AfterFunc(600*time.Millisecond, func() { _ = syscall.Kill(pid, syscall.SIGCONT) })
	})
	skipped, err := Run(t.Context(), []*Lane{l}, Options{Interval: 20 * time.Millisecond, Count: 60, Grace: time.Minute}, func(e Echo) {
		stall()
		if e.Latency > 100*time.Millisecond {
			late++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if late+skipped < 20 { // of (600 - 100) / 20
		t.Errorf("%d bytes were late", late)
	}
}

// TestBrokenSession: what came back is told, what did not is lost, and ssh's words say why.
func TestBrokenSession(t *testing.T) {
	s := sshtest.StartSshd(t)
	l := opened(t, clientTo(t, s, s.Port), pipe)
	var echoes []Echo
	_, err := Run(t.Context(), []*Lane{l}, Options{Interval: 10 * time.Millisecond, Count: 100_000, Grace: time.Second}, func(e Echo) {
		if echoes = append(echoes, e); len(echoes) == 10 {
			_ = syscall.Kill(l.Process.Pid, syscall.SIGKILL)
		}
	})
	var failed *FailedError
	if !errors.As(err, &failed) || failed.Lane != pipe {
		t.Errorf("got %v", err)
	}
	if got := summarize([]string{pipe}, echoes); len(got) != 1 || got[0].Back == 0 || got[0].Sent > 90_000 {
		t.Errorf("got %+v", got)
	}
}

// TestNoSession: a login that fails says so in ssh's words.
func TestNoSession(t *testing.T) {
	s := sshtest.StartSshd(t)
	c := clientTo(t, s, s.Port)
	c.Destination = c.Destination.With("PubkeyAuthentication=no")
	var failed *FailedError
	if _, err := Open(context.Background(), c, pipe); !errors.As(err, &failed) || failed.Said != s.User+"@127.0.0.1: Permission denied (publickey)." {
		t.Errorf("got %v", err)
	}
}

// TestSummarize: a quantile stands where a byte lies above it; lost bytes count as sent.
func TestSummarize(t *testing.T) {
	var echoes []Echo
	for i := range 200 {
		echoes = append(echoes, Echo{Lane: pipe, Seq: i + 1, At: time.Duration(i), Latency: time.Duration(i + 1)})
	}
	echoes = append(echoes, Echo{Lane: pipe, Seq: 201, At: 200, Latency: Lost}, Echo{Lane: terminal, Seq: 1, Latency: 5, Loaded: true})
	all := summarize([]string{terminal, pipe}, echoes)
	if len(all) != 2 || all[0].Lane != pipe || !all[1].Loaded {
		t.Fatalf("got %+v", all)
	}
	s := all[0]
	_, thousandth := s.Quantiles["p99.9"]
	if s.Sent != 201 || s.Back != 200 || s.Median.Value != 100.5 || s.Min != 1 || s.Max != 200 || s.Quantiles["p99"] != 198 || thousandth {
		t.Errorf("got %+v", s)
	}
	if len(s.Timeline) != 10 || s.Timeline[0] >= s.Timeline[9] {
		t.Errorf("the timeline is %v", s.Timeline)
	}
}

// TestPhases: without a count idle and loaded times take turns, and what is left of a transfer does
// not count as idle.
func TestPhases(t *testing.T) {
	r := run{Options: Options{Interval: 500 * time.Millisecond, Phase: 2 * time.Second, Load: &Load{}}}
	for _, c := range []struct {
		seq           int
		loaded, flows bool
	}{{1, false, false}, {4, false, false}, {5, true, true}, {8, true, true}, {9, true, false}, {10, true, false}, {11, false, false}, {12, false, false}, {13, true, true}} {
		if loaded, flows := r.loaded(c.seq), r.flows(c.seq); loaded != c.loaded || flows != c.flows {
			t.Errorf("round %d: loaded %v, flows %v", c.seq, loaded, flows)
		}
	}
}

// TestBudget: a budget is all the time, also where half of it is beside a transfer.
func TestBudget(t *testing.T) {
	idle, loaded := &Sessions{}, &Sessions{load: &Load{}}
	for _, c := range []struct {
		of     *Sessions
		length sched.Rounds
		want   int
	}{
		{idle, sched.Rounds{}, 0}, {loaded, sched.Rounds{Count: 7}, 7}, {idle, sched.Rounds{Budget: 10 * time.Second}, 50},
		{loaded, sched.Rounds{Budget: 10 * time.Second}, 25}, {loaded, sched.Rounds{Budget: 1}, 1},
	} {
		if got := c.of.bytes(c.length, 200*time.Millisecond); got != c.want {
			t.Errorf("%+v: %d bytes, want %d", c.length, got, c.want)
		}
	}
}

// TestEveryEchoIsTold: echoes that come back at the same time as the last one are told, too.
func TestEveryEchoIsTold(t *testing.T) {
	const lanes, runs = 8, 200
	none, err := openssh.Start([]string{"true"}, nil, filepath.Join(t.TempDir(), "log"), nil, nil, (*exec.Cmd).Start)
	if err != nil {
		t.Fatal(err)
	}
	for range runs {
		var all []*Lane
		for range lanes {
			out, in, err := os.Pipe() // what is written comes back
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, &Lane{Name: "loop", Running: none, in: in, out: out})
		}
		told := 0
		_, err := Run(t.Context(), all, Options{Interval: time.Millisecond, Count: 1, Grace: 10 * time.Second}, func(Echo) { told++ })
		for _, l := range all {
			l.in.Close()
			l.out.Close()
		}
		if told != lanes || err != nil {
			t.Fatalf("%d of %d bytes were told, %v", told, lanes, err)
		}
	}
}

// TestNoAnswer: where a login stands when the host falls silent is told, with the time that it had;
// and what a host says that is no SSH server.
func TestNoAnswer(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s := sshtest.StartSshd(t)
	for _, c := range []struct{ greeting, want string }{
		{"", "no answer in LIMIT during the exchange of version lines"},
		{"SSH-2.0-OpenSSH_9.9\r\n", "no answer in LIMIT during the exchange of lists of algorithms"},
		{"hello\r\n", `the server sent "hello" instead of an SSH version`},
	} {
		address := sshtest.Answering(t, func(peer net.Conn) {
			_, _ = io.WriteString(peer, c.greeting)
			_, _ = io.Copy(io.Discard, peer) // until ssh ends
		})
		client := clientTo(t, s, address.Port)
		waittest.InTime(t, time.Second, func(limit time.Duration) error {
			client.Connect = limit
			want := strings.ReplaceAll(c.want, "LIMIT", limit.String())
			var failed *FailedError
			if _, err := Open(t.Context(), client, pipe); !errors.As(err, &failed) || failed.Said != want {
				return fmt.Errorf("after %q: %w, want %s", c.greeting, err, want)
			}
			return nil
		})
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "sshpace-ping-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestNothingBack: that no byte comes back is a failure, and the bytes are told as lost.
func TestNothingBack(t *testing.T) {
	s := sshtest.StartSshd(t)
	r, err := relay.To(fmt.Sprintf("127.0.0.1:%d", s.Port), relay.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	sessions := &Sessions{lanes: []*Lane{opened(t, clientTo(t, s, r.Port()), pipe)}}
	r.Freeze()
	result, err := sessions.Run(t.Context(), 50*time.Millisecond, sched.Rounds{Count: 3}, func(Echo) {})
	var failed *FailedError
	if !errors.As(err, &failed) || failed.Said != "no byte came back" {
		t.Errorf("got %v", err)
	}
	if len(result.Lanes) != 1 || result.Lanes[0].Sent != 3 || result.Lanes[0].Back != 0 {
		t.Errorf("got %+v", result.Lanes)
	}
}
