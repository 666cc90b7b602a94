package dial_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/sys/unix"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// TestLoginFaults breaks one login in every way that a peer can.
func TestLoginFaults(t *testing.T) {
	t.Parallel()
	good := (&sshtest.Server{}).Start(t)
	over := make(chan struct{})
	tests := []struct {
		name   string
		server *sshtest.Server
		edit   func(*dial.Target)
		stuck  bool // it goes on until its time is over
		class  fleet.Class
		phase  fleet.Phase
		text   string // part of the error
		hint   string // part of the hint
		again  bool   // must have been tried more than once
	}{
		{name: "refused", edit: func(x *dial.Target) { x.Port = closedPort(t) },
			class: fleet.Refused, phase: fleet.PhaseConnect, text: "connect to host 127.0.1.1 port "},
		{name: "down", edit: func(x *dial.Target) { x.Port = silentPort(t) }, stuck: true,
			class: fleet.TimedOut, phase: fleet.PhaseConnect, text: "Connection timed out"},
		{name: "address of the other family", edit: func(x *dial.Target) { x.Family = dial.IPv6 },
			class: fleet.NameFailed, phase: fleet.PhaseDNS, text: "Could not resolve hostname 127.0.1.1: Address family for hostname not supported"},
		{name: "reset before banner", server: &sshtest.Server{Raw: reset},
			class: fleet.Throttled, phase: fleet.PhaseKex, text: "kex_exchange_identification: ", again: true, hint: "may limit logins"},
		{name: "close before banner", server: &sshtest.Server{Raw: func(net.Conn) {}},
			class: fleet.Throttled, phase: fleet.PhaseKex, text: "kex_exchange_identification: ", again: true},
		{name: "MaxStartups text", server: &sshtest.Server{Raw: say("Exceeded MaxStartups\r\n")},
			class: fleet.Throttled, phase: fleet.PhaseKex, again: true},
		{name: "close after banner", server: &sshtest.Server{Raw: say("SSH-2.0-x\r\n")},
			class: fleet.Throttled, phase: fleet.PhaseKex, again: true},
		{name: "stall before banner", server: &sshtest.Server{Raw: stall("")}, stuck: true,
			class: fleet.TimedOut, phase: fleet.PhaseKex, text: "timed out during banner exchange"},
		{name: "stall in banner", server: &sshtest.Server{Raw: stall("SSH-2.0-slo")}, stuck: true,
			class: fleet.TimedOut, phase: fleet.PhaseKex, text: "timed out during banner exchange", hint: `"SSH-2.0-slo"`},
		{name: "one byte at a time", server: &sshtest.Server{Raw: drip("SSH-2.0-this_is_an_endless_version_line")}, stuck: true,
			class: fleet.TimedOut, phase: fleet.PhaseKex, text: "timed out during banner exchange", hint: "only the beginning"},
		{name: "stall after banner", server: &sshtest.Server{Raw: stall("SSH-2.0-x\r\n")}, stuck: true,
			class: fleet.TimedOut, phase: fleet.PhaseKex, text: "timed out during key exchange"},
		{name: "web server", server: &sshtest.Server{Raw: stall("HTTP/1.1 400 Bad Request\r\n\r\n")},
			class: fleet.NotSSH, phase: fleet.PhaseKex, text: "HTTP/1.1 400"},
		{name: "SSH 1", server: &sshtest.Server{Raw: stall("SSH-1.5-old\n")},
			class: fleet.NotSSH, phase: fleet.PhaseKex, text: "SSH-1.5-old"},
		{name: "mail server", server: &sshtest.Server{Raw: say("220 mail\x1b[31m ESMTP\r\n")},
			class: fleet.NotSSH, phase: fleet.PhaseKex, text: `"220 mail\x1b[31m ESMTP`},
		{name: "endless greeting", server: &sshtest.Server{Raw: flood},
			class: fleet.NotSSH, phase: fleet.PhaseKex},
		{name: "garbage after banner", server: &sshtest.Server{Raw: say("SSH-2.0-x\r\n" + strings.Repeat("\xff", 4096))},
			class: fleet.NotSSH, phase: fleet.PhaseKex},
		{name: "no common algorithm", edit: func(x *dial.Target) { x.KeyExchanges = []string{"ecdh-sha2-nistp521"} },
			class: fleet.NoCommonAlgo, phase: fleet.PhaseKex, text: ": no matching key exchange method found. Their offer: "},
		{name: "changed key", edit: func(x *dial.Target) { x.HostKeys = fixedKey{sshtest.NewKey(t).PublicKey()} },
			class: fleet.HostKeyChanged, phase: fleet.PhaseHostkey, text: "has changed"},
		{name: "unknown key", edit: func(x *dial.Target) { x.HostKeys = noKey{} },
			class: fleet.HostKeyUnknown, phase: fleet.PhaseHostkey, text: "no host key is known"},
		{name: "login refused", server: &sshtest.Server{Deny: true},
			class: fleet.AuthFailed, phase: fleet.PhaseAuth, text: "tester@127.0.1.1: Permission denied (publickey)."},
		{name: "no key", edit: func(x *dial.Target) { x.Identity = dial.Identity{} },
			class: fleet.AuthFailed, phase: fleet.PhaseAuth, text: "Permission denied (publickey)."},
		{name: "stall in login", server: &sshtest.Server{Hold: func() { <-over }}, stuck: true,
			class: fleet.TimedOut, phase: fleet.PhaseAuth, text: "timed out during login"},
		{name: "session not answered", server: &sshtest.Server{IgnoreSession: true}, edit: halfDead, stuck: true,
			class: fleet.TimedOut, phase: fleet.PhaseExec, text: "did not open a session in time"},
		{name: "session refused", server: &sshtest.Server{RefuseSession: true},
			class: fleet.ExecRefused, phase: fleet.PhaseExec, text: "refused the session"},
		{name: "exec refused", server: &sshtest.Server{RefuseExec: true},
			class: fleet.ExecRefused, phase: fleet.PhaseExec, text: "refused to run"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := good
			if test.server != nil {
				s = test.server.Start(t)
				if test.server.Hold != nil {
					t.Cleanup(func() { close(over) })
				}
			}
			tg := target(t, s)
			if test.edit != nil {
				test.edit(&tg)
			}
			waittest.InTime(t, time.Second, func(limit time.Duration) error {
				retry := 50 * time.Millisecond
				if test.again {
					retry = limit
				}
				if test.stuck {
					tg.ConnectTimeout = limit
				}
				r := run(t, fanout.Params{RetryFor: retry}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]
				if r.Ran != fleet.RanNo || r.Status() != fleet.Unreachable || r.Exit != -1 {
					t.Errorf("ran %v, status %v, exit %d", r.Ran, r.Status(), r.Exit)
				}
				if strings.ContainsAny(r.Err, "\x1b\n") {
					t.Errorf("raw text of the peer in %q", r.Err)
				}
				if r.Class != test.class || r.Phase != test.phase || !strings.Contains(r.Err, test.text) || !strings.Contains(r.Hint, test.hint) || test.again != (r.Attempts > 1) {
					return fmt.Errorf("got %v in %v: %q (%s), %d attempts\nwant %v in %v: %q", r.Class, r.Phase, r.Err, r.Hint, r.Attempts, test.class, test.phase, test.text)
				}
				return nil
			})
		})
	}
}

// halfDead has questions for a sign of life that are all answered.
func halfDead(x *dial.Target) { x.AliveInterval, x.AliveCountMax = 50*time.Millisecond, 1000 }

// drip sends a byte now and then.
func drip(text string) func(net.Conn) {
	return func(c net.Conn) {
		for _, b := range []byte(text) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	}
}

func reset(c net.Conn) {
	c.Read(make([]byte, 1)) // an earlier reset could be seen by connect already
	c.(*net.TCPConn).SetLinger(0)
}

func say(text string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, text)
		bufio.NewReader(c).ReadString('\n') // their version; closing earlier would reset
		c.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, c)
	}
}

func stall(text string) func(net.Conn) {
	return func(c net.Conn) {
		io.WriteString(c, text)
		io.Copy(io.Discard, c)
	}
}

func flood(c net.Conn) {
	for {
		if _, err := io.WriteString(c, "all work and no play makes jack a dull boy "); err != nil {
			return
		}
	}
}

func closedPort(t *testing.T) int {
	t.Helper()
	port, err := sshtest.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// silentPort is a port that neither accepts nor refuses: its queue is full.
func silentPort(t *testing.T) int {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrInet4{}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	name, err := unix.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	port := name.(*unix.SockaddrInet4).Port
	for range 2 {
		d := net.Dialer{Timeout: 200 * time.Millisecond}
		if c, err := d.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			t.Cleanup(func() { c.Close() })
		}
	}
	return port
}

// TestCommandEnds covers the ways in which a command that runs can end.
func TestCommandEnds(t *testing.T) {
	tests := []struct {
		name string
		exec func(*sshtest.Session)
		want fleet.Result
	}{
		{"hostile signal name", func(x *sshtest.Session) { x.Signal("\x1b[2Jkill") }, fleet.Result{Outcome: fleet.Outcome{Exit: -1, Signal: "2JKILL"}}},
		{"no status", func(*sshtest.Session) {}, fleet.Result{Outcome: fleet.Outcome{Exit: -1, Class: fleet.NoStatus}}},
		{"output after status", func(x *sshtest.Session) { x.Exit(3); io.WriteString(x, "late") }, fleet.Result{OutBytes: 4, Outcome: fleet.Outcome{Exit: 3}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := (&sshtest.Server{Exec: test.exec}).Start(t)
			r := run(t, fanout.Params{}, target(t, s), hosts(1), fleet.Command{Line: "x"}, &sshtest.Told{})[0]
			if r.Ran != fleet.RanYes || r.Exit != test.want.Exit || r.Signal != test.want.Signal || r.Class != test.want.Class || r.OutBytes != test.want.OutBytes {
				t.Errorf("got %+v", r)
			}
		})
	}
}

// TestChangedPackets: a packet that was changed on its way is the reason of the loss, in the words
// of ssh.
func TestChangedPackets(t *testing.T) {
	for at, want := range map[sshtest.Step]string{
		sshtest.AtService: "message authentication code incorrect", sshtest.AtRequest: "message authentication code incorrect: connection lost before the command started",
		sshtest.AtRun: "message authentication code incorrect: connection lost while the command was running",
	} {
		key := sshtest.NewKey(t)
		server := &sshtest.Hostile{At: at, HostKey: key, Do: func(p *sshtest.Peer) {
			const length, tag = 32, 16
			_, _ = p.Conn.Conn.Write(append([]byte{0, 0, 0, length}, make([]byte, length+tag)...))
			<-p.End
		}}
		path, _ := sshtest.WriteKey(t, t.TempDir(), "key", "")
		tg := dial.Target{Port: server.Start(t), User: "u", HostKeys: fixedKey{key.PublicKey()}, Identity: dial.Identity{Files: []string{path}}}
		r := run(t, fanout.Params{}, tg, []host.Host{{Name: "127.0.0.1"}}, fleet.Command{Line: "x"}, &sshtest.Told{})[0]
		if r.Status() == fleet.OK || !strings.HasSuffix(r.Err, want) {
			t.Errorf("at %s: %q, want %q", at, r.Err, want)
		}
	}
}

// certified says of every key that a certificate of another type would do.
type certified struct{ noKey }

func (c certified) Check(ctx context.Context, name string, port int, remote net.Addr, key ssh.PublicKey) error {
	err, _ := errors.AsType[*dial.Error](c.noKey.Check(ctx, name, port, remote, key))
	err.Lacking = []string{ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA256}
	return err
}

// TestLackingHostKey: ssh is asked for where the server has an algorithm that it would take, and
// this engine lacks, and nowhere else.
func TestLackingHostKey(t *testing.T) {
	both, one := sshtest.StartKeyServer(t).Sshd, sshtest.StartSshd(t)
	for s, want := range map[*sshtest.Sshd]bool{both: true, one: false} {
		tg := sshdTarget(s)
		tg.HostKeys, tg.HostKeyAlgorithms = certified{}, []string{ssh.KeyAlgoED25519}
		r := run(t, fanout.Params{}, tg, []host.Host{{Name: "127.0.0.1"}}, fleet.Command{Line: "true"}, &sshtest.Told{})[0]
		why, _ := errors.AsType[*dial.Error](r.Cause)
		if r.Class != fleet.HostKeyUnknown || why == nil || why.OnlySSH != want || strings.Contains(r.Hint, "offers ecdsa-sha2-nistp256, which only ssh") != want {
			t.Errorf("%v: %+v", want, r)
		}
	}
}

// TestUnansweredExec: a server that lives but does not answer the request. It may have run the
// command, so that it is not run again.
func TestUnansweredExec(t *testing.T) {
	t.Parallel()
	s := (&sshtest.Server{IgnoreExec: true}).Start(t)
	tg := target(t, s)
	halfDead(&tg)
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		tg.ConnectTimeout = limit
		r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "x"}, &sshtest.Told{})[0]
		if r.Ran != fleet.RanUnknown || r.Class != fleet.TimedOut || r.Attempts != 1 || r.Status() != fleet.Failed || !strings.Contains(r.Err, "may run there") {
			return fmt.Errorf("got %+v", r)
		}
		return nil
	})
}

// TestMaxStartups has 60 hosts on one sshd that drops nearly everything beyond two logins at once:
// all must succeed in the end.
func TestMaxStartups(t *testing.T) {
	s := sshtest.StartSshd(t, "MaxStartups 2:50:4")
	const n = 60
	tg := sshdTarget(s)
	tg.ConnectTimeout = 2 * time.Minute // however busy this machine is
	res := run(t, fanout.Params{RetryFor: 10 * time.Minute}, tg, hosts(n), fleet.Command{Line: "true"}, &sshtest.Told{})
	tries := 0
	for _, r := range res {
		tries += r.Attempts
		if r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
	}
	t.Logf("%d hosts, %d connections", n, tries)
}

// TestDeadAmongLive has a dead host beside every live one. The live ones must be through long
// before the dead ones time out.
func TestDeadAmongLive(t *testing.T) {
	const n = 200
	s := (&sshtest.Server{}).Start(t)
	silent := silentPort(t)
	hs := hosts(2 * n)
	for i := range hs {
		hs[i].Port = uint16(s.Port())
		if i%2 == 0 {
			hs[i].Port = uint16(silent)
		}
	}
	tg := target(t, s)
	const timeout = 2 * time.Minute
	tg.ConnectTimeout = timeout
	e := dial.New(byPort(tg), dial.Options{})
	defer e.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ok := 0
	start := time.Now()
	var last time.Duration
	sink := &sshtest.Told{OnDone: func(r fleet.Result) {
		if r.Status() == fleet.OK {
			if ok++; ok == n {
				last = time.Since(start)
				cancel() // the rest of the test is waiting for timeouts
			}
		}
	}}
	sum, err := fanout.Run(ctx, fanout.Params{}, hs, fleet.Command{Line: "true"}, e, sink)
	if ok != n || sum.Total() != 2*n || !errors.Is(err, context.Canceled) {
		t.Fatalf("%d live hosts done, summary %+v, %v", ok, sum, err)
	}
	t.Logf("%d live hosts among as many dead ones: %v", n, last)
	if last >= timeout {
		t.Errorf("live hosts waited for dead ones: %v", last)
	}
}

// TestRefusedAmongSilent: hosts that refuse are told long before those that are silent, although
// most of them come behind.
func TestRefusedAmongSilent(t *testing.T) {
	t.Parallel()
	const n, refusing = 600, 100
	closed, silent := closedPort(t), silentPort(t)
	hs := hosts(n + refusing)
	for i := range hs {
		hs[i].Port = uint16(silent)
		if i >= n {
			hs[i].Port = uint16(closed)
		}
	}
	tg := target(t, (&sshtest.Server{}).Start(t))
	const timeout = 2 * time.Minute
	tg.ConnectTimeout = timeout
	e := dial.New(byPort(tg), dial.Options{})
	defer e.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	start, refused := time.Now(), 0
	sink := &sshtest.Told{OnDone: func(r fleet.Result) {
		if r.Class == fleet.Refused {
			if refused++; refused == refusing {
				cancel() // the rest of the test is waiting for timeouts
			}
		}
	}}
	fanout.Run(ctx, fanout.Params{}, hs, fleet.Command{Line: "true"}, e, sink)
	t.Logf("%d closed ports behind %d silent hosts: %v", refused, n, time.Since(start))
	if refused != refusing || time.Since(start) >= timeout {
		t.Errorf("%d of %d closed ports were told before the first timeout", refused, refusing)
	}
}

// byPort is resolve with the host's own port.
type byPort dial.Target

func (r byPort) Target(_ context.Context, h host.Host) (*dial.Target, error) {
	t := dial.Target(r)
	t.HostName, t.Port = h.Name, int(h.Port)
	return &t, nil
}

// TestNames has one name server answer for many hosts, and one that fails.
func TestNames(t *testing.T) {
	s := (&sshtest.Server{}).Start(t)
	var mu sync.Mutex
	asked := map[string]int{}
	lookup := func(_ context.Context, _, name string) ([]netip.Addr, error) {
		mu.Lock()
		asked[name]++
		mu.Unlock()
		switch name {
		case "gone":
			return nil, &net.DNSError{IsNotFound: true, Name: name}
		case "broken":
			return nil, &net.DNSError{IsTimeout: true, Name: name}
		}
		return []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.9")}, nil
	}
	hs := []host.Host{{Name: "gone"}, {Name: "broken"}}
	for range 50 {
		hs = append(hs, host.Host{Name: "same"})
	}
	res := runWith(t, fanout.Params{}, dial.Options{Lookup: lookup}, target(t, s), hs, fleet.Command{Line: "true"}, &sshtest.Told{})
	for i, want := range []string{"Could not resolve hostname gone: Name or service not known", "Could not resolve hostname broken: Temporary failure in name resolution"} {
		if r := res[i]; r.Class != fleet.NameFailed || r.Phase != fleet.PhaseDNS || r.Err != want {
			t.Errorf("got %+v", r)
		}
	}
	for _, r := range res[2:] {
		if r.Status() != fleet.OK || !strings.HasPrefix(r.Addr, "127.0.0.9:") {
			t.Fatalf("%+v", r)
		}
	}
	if asked["same"] != 1 {
		t.Errorf("asked %d times for one name", asked["same"])
	}
}

// TestNaming has a name server that is silent at first: the number of names without an answer is
// known, those of hosts that wait for their look-up included.
func TestNaming(t *testing.T) {
	answer := make(chan struct{})
	engine := dial.New(resolve(dial.Target{User: "u", HostKeys: target(t, (&sshtest.Server{}).Start(t)).HostKeys}), dial.Options{Lookup: func(_ context.Context, _, name string) ([]netip.Addr, error) {
		<-answer
		return nil, &net.DNSError{IsNotFound: true, Name: name}
	}})
	defer engine.Close()
	var hosts []host.Host
	for i := range 100 {
		hosts = append(hosts, host.Host{Name: fmt.Sprint("n", i)})
	}
	var run sync.WaitGroup
	run.Go(func() {
		_, _ = fanout.Run(t.Context(), fanout.Params{}, hosts, fleet.Command{Line: "true"}, engine, &sshtest.Told{})
	})
	waittest.Until(t, "all names are asked for", func() bool { return engine.Naming() == len(hosts) })
	close(answer)
	run.Wait()
	if n := engine.Naming(); n != 0 {
		t.Errorf("%d names are asked for after the run", n)
	}
}

// TestKeepAlive has a server that falls silent while a command runs.
func TestKeepAlive(t *testing.T) {
	t.Parallel()
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		running := make(chan struct{})
		s := (&sshtest.Server{Exec: func(x *sshtest.Session) { close(running); <-x.Signals }}).Start(t)
		cable := through(t, s.Port(), relay.Options{})
		go func() {
			select {
			case <-running:
				cable.Freeze()
			case <-t.Context().Done():
			}
		}()
		tg := target(t, s)
		tg.Port, tg.AliveInterval, tg.AliveCountMax = cable.Port(), limit/4, 4
		r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "x"}, &sshtest.Told{})[0]
		if r.Class != fleet.Lost || r.Err != "Timeout, server not responding" || r.Ran != fleet.RanUnknown {
			return fmt.Errorf("got %+v", r)
		}
		if r.Elapsed < limit {
			t.Errorf("a server that answered was given up after %v", r.Elapsed)
		}
		return nil
	})
}

// TestOwnSilence: as long as our own output is stuck, a server that lives is not taken for silent,
// whose answers are not read meanwhile.
func TestOwnSilence(t *testing.T) {
	t.Parallel()
	waittest.InTime(t, 500*time.Millisecond, func(limit time.Duration) error {
		s := (&sshtest.Server{Exec: func(x *sshtest.Session) { io.WriteString(x, "out\n"); time.Sleep(2 * limit); x.Exit(0) }}).Start(t)
		tg := target(t, s)
		tg.AliveInterval, tg.AliveCountMax = limit/2, 2
		pager := sshtest.Told{OnOutput: func(fleet.Event) error { time.Sleep(5 * limit / 2); return nil }}
		if r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "x"}, &pager)[0]; r.Status() != fleet.OK {
			return fmt.Errorf("got %+v", r)
		}
		return nil
	})
}

// through is a relay to a port on loopback.
func through(t testing.TB, port int, o relay.Options) *relay.Relay {
	t.Helper()
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Listener = l
	r, err := relay.To(fmt.Sprintf("127.0.0.1:%d", port), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}
