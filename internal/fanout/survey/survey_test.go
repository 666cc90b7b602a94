//go:build linux

package survey_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/bench/doctor"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/survey"
	"sshpace/internal/record"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// place is where a server waits.
type place int

const (
	nowhere place = iota
	beforeVersion
	inKex
	atMethods
	atKeys // at both requests
	atSignature
	atSession
	atCommand
)

// slowServer answers in each phase but one at once. Nothing runs on it but echo, and sh.
type slowServer struct {
	key   ssh.Signer
	waits place
	long  time.Duration
}

func (s slowServer) at(p place) {
	if s.waits == p {
		time.Sleep(s.long)
	}
}

// lateWriter waits before the third packet: after the version line and the list of algorithms.
type lateWriter struct {
	net.Conn
	server slowServer
	writes atomic.Int32
}

func (w *lateWriter) Write(p []byte) (int, error) {
	if w.writes.Add(1) == 3 {
		w.server.at(inKex)
	}
	return w.Conn.Write(p)
}

func (s slowServer) serve(c net.Conn) {
	s.at(beforeVersion)
	config := &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) {
			s.at(atKeys)
			return nil, nil
		},
		AuthLogCallback: func(_ ssh.ConnMetadata, method string, err error) {
			switch {
			case method == "none":
				s.at(atMethods)
			case err == nil:
				s.at(atKeys)
				s.at(atSignature)
			}
		},
	}
	config.AddHostKey(s.key)
	conn, channels, requests, err := ssh.NewServerConn(&lateWriter{Conn: c, server: s}, config)
	if err != nil {
		return
	}
	defer conn.Close()
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		s.at(atSession)
		ch, requests, err := asked.Accept()
		if err != nil {
			return
		}
		go s.session(ch, requests)
	}
}

func (s slowServer) session(ch ssh.Channel, requests <-chan *ssh.Request) {
	defer ch.Close()
	for r := range requests {
		if r.Reply(r.Type == "exec", nil); r.Type != "exec" {
			continue
		}
		s.at(atCommand)
		cmd := exec.Command("sh", "-c", string(r.Payload[4:]))
		if string(r.Payload[4:]) == "echo sshpace-survey" { // which needs no process
			io.WriteString(ch, "sshpace-survey\n")
		} else {
			cmd.Stdin, cmd.Stdout = ch, ch
			cmd.Run()
		}
		ch.SendRequest("exit-status", false, make([]byte, 4))
		return
	}
}

// fleet is hosts, under one configuration.
type fleet struct {
	t      *testing.T
	key    ssh.Signer
	config strings.Builder
	hosts  []host.Host
	want   map[string]string // by host: the check, or the class of a failure

	timeout time.Duration // of commands
}

func newFleet(t *testing.T) *fleet {
	return &fleet{t: t, key: sshtest.NewKey(t), want: map[string]string{}, timeout: 30 * time.Second}
}

// at adds a host at a port of this machine, with further settings.
func (f *fleet) at(name, want string, port int, settings ...string) {
	fmt.Fprintf(&f.config, "Host %s\nPort %d\n%s\n", name, port, strings.Join(settings, "\n"))
	f.hosts = append(f.hosts, host.Host{Name: name})
	if want != "" {
		f.want[name] = want
	}
}

// says adds a host that treats connections in a way.
func (f *fleet) says(name, want string, answer func(net.Conn), settings ...string) {
	f.at(name, want, sshtest.Answering(f.t, answer).Port, settings...)
}

// survey logs in to all hosts.
func (f *fleet) survey() map[string]*record.Host {
	f.t.Helper()
	dir := f.t.TempDir()
	key, _ := sshtest.WriteKey(f.t, dir, "key", "")
	file, known := filepath.Join(dir, "config"), filepath.Join(dir, "known")
	fmt.Fprintf(&f.config, "Host *\nHostName 127.0.0.1\nUser x\nIdentityFile %s\nIdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\nStrictHostKeyChecking accept-new\nConnectTimeout 40\n", key, known)
	if err := os.WriteFile(file, []byte(f.config.String()), 0o600); err != nil {
		f.t.Fatal(err)
	}
	e, err := reach.New(f.t.Context(), reach.Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: file}}, Engine: reach.Native})
	if err != nil {
		f.t.Fatal(err)
	}
	defer e.Close()
	seen := map[string]*record.Host{}
	p := survey.Params{Judge: &doctor.Fleet{}, Fanout: fanout.Params{RetryFor: -1, CommandTimeout: f.timeout}, Progress: func(int, int) {}, Sink: func(r record.Record) error {
		h := r.(*record.Host)
		seen[h.Name] = h
		return nil
	}}
	if err := survey.Run(f.t.Context(), p, f.hosts, e); err != nil {
		f.t.Fatal(err)
	}
	return seen
}

// verdict is what is said of a host.
func verdict(h *record.Host) string {
	if len(h.Causes) == 0 {
		return h.Class
	}
	var checks []string
	for _, c := range h.Causes {
		checks = append(checks, c.Check)
	}
	return strings.Join(checks, ",")
}

// TestPlanted: among 400 hosts each of 13 is slow, or broken, for another reason. Each is named,
// and nothing else.
func TestPlanted(t *testing.T) {
	t.Parallel()
	const long = 6 * time.Second
	f := newFleet(t)
	slow := func(at place) func(net.Conn) { return slowServer{f.key, at, long}.serve }
	hang := func(at place) func(net.Conn) { return slowServer{f.key, at, 2 * long}.serve }
	port := sshtest.Answering(t, slow(nowhere)).Port
	for i := range 387 {
		f.at(fmt.Sprintf("web%d", i), "", port)
	}
	f.says("banner", "banner", slow(beforeVersion))
	f.says("exchange", "kex", slow(inKex))
	f.says("names", "request", slow(atMethods))
	f.says("keys", "authorized-keys", slow(atKeys))
	f.says("account", "account", slow(atSignature))
	f.says("session", "session", slow(atSession))
	f.says("startup", "shell", slow(atCommand))
	f.says("mtu", "kex", hang(inKex), "ConnectTimeout 3")
	f.says("pam", "account", hang(atSignature), "ConnectTimeout 3")
	f.says("full", "refused", func(c net.Conn) { io.WriteString(c, "Exceeded MaxStartups\r\n") })
	f.says("penalty", "refused", func(c net.Conn) { io.WriteString(c, "Not allowed at this time\r\n") })
	gate := sshtest.StartSshd(t)
	slowGate := sshtest.Answering(t, func(c net.Conn) {
		time.Sleep(long)
		pass(c, gate.Port)
	}).Port
	fmt.Fprintf(&f.config, "Host gate\nPort %d\nUser %s\nIdentityFile %s\n", slowGate, gate.User, gate.Key)
	f.at("behind", "proxy", port, "ProxyJump gate")
	forced := sshtest.StartSshd(t, "ForceCommand exit 1")
	f.at("noshell", "no-shell", forced.Port, "User "+forced.User, "IdentityFile "+forced.Key)
	for name, h := range f.survey() {
		if got := verdict(h); got != f.want[name] {
			t.Errorf("%s: %q, want %q: %s %+v", name, got, f.want[name], h.Failure, h.Phases)
		}
	}
}

// pass joins a connection with a port.
func pass(c net.Conn, port int) {
	to, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	defer to.Close()
	go func() { io.Copy(to, c); to.(*net.TCPConn).CloseWrite() }()
	io.Copy(c, to)
}

// TestHostileHosts: hosts that hang, flood or hang up end with a failure of their own, and nobody
// waits longer than the connect timeout.
func TestHostileHosts(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.says("silent", "timeout", func(c net.Conn) { io.Copy(io.Discard, c) }, "ConnectTimeout 1")
	f.says("flood", "not_ssh", func(c net.Conn) {
		for line := strings.Repeat("x", 1000) + "\r\n"; ; {
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	})
	f.says("closes", "refused", func(net.Conn) {})
	f.says("names", "request", slowServer{f.key, atMethods, 3 * time.Second}.serve, "ConnectTimeout 1")
	f.says("session", "session", slowServer{f.key, atSession, 3 * time.Second}.serve, "ConnectTimeout 1")
	f.says("shell", "shell", slowServer{f.key, atCommand, 12 * time.Second}.serve)
	f.timeout = 2 * time.Second
	for name, h := range f.survey() {
		if got := verdict(h); got != f.want[name] {
			t.Errorf("%s: %q, want %q: %s", name, got, f.want[name], h.Failure)
		}
		if len(h.Banner) > 300 || h.WallNS > 20*time.Second {
			t.Errorf("%s: %d bytes, %v", name, len(h.Banner), h.WallNS)
		}
	}
}

// TestForcedCommandRunsOnce: an account whose every command is another one gets no second one.
func TestForcedCommandRunsOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	log := filepath.Join(t.TempDir(), "log")
	s := sshtest.StartSshd(t, "ForceCommand echo ran >>"+log+"; sleep 2")
	f.at("forced", "shell", s.Port, "User "+s.User, "IdentityFile "+s.Key)
	h := f.survey()["forced"]
	if text, err := os.ReadFile(log); err != nil || string(text) != "ran\n" {
		t.Errorf("it ran: %q, %v", text, err)
	}
	last := h.Phases[len(h.Phases)-1]
	if last.Phase != record.PhaseCommand || last.WallNS < time.Second {
		t.Errorf("%+v", h.Phases)
	}
}

// TestPhases: the phases of a login to sshd follow each other, each once, and sum up to the login.
func TestPhases(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	s := sshtest.StartSshd(t)
	f.at("web", "", s.Port, "User "+s.User, "IdentityFile "+s.Key)
	h := f.survey()["web"]
	var names []record.Phase
	var sum time.Duration
	for _, p := range h.Phases {
		names, sum = append(names, p.Phase), sum+p.WallNS
		if p.Unended || p.WallNS < 0 {
			t.Errorf("%+v", p)
		}
	}
	want := slices.DeleteFunc(slices.Clone(record.AllPhases), func(p record.Phase) bool { return p == record.PhaseStart || p == record.PhaseClose })
	if !slices.Equal(names, want) || sum != h.WallNS {
		t.Errorf("%v, %v in all, %v", names, sum, h.WallNS)
	}
	if !strings.HasPrefix(h.Banner, "SSH-2.0-OpenSSH_") || h.Suite.Kex == "" || !slices.Contains(h.Offer.HostKeys, "ssh-ed25519") || h.RTTNS <= 0 || h.SigningNS <= 0 || *h.Exit != 0 {
		t.Errorf("%+v", h)
	}
}
