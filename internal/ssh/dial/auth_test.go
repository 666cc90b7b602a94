package dial_test

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
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// fakeAgent serves keys on a socket. It counts connections, can be slow, and can die after some
// signatures.
type fakeAgent struct {
	agent.Agent
	socket   string
	mu       sync.Mutex
	conns    int
	signed   int
	wait     func() // before each signature
	dieAfter int
	listener net.Listener
}

func startAgent(t *testing.T, private ...any) *fakeAgent {
	t.Helper()
	a := &fakeAgent{Agent: agent.NewKeyring(), socket: filepath.Join(t.TempDir(), "agent")}
	for _, k := range private {
		if err := a.Add(agent.AddedKey{PrivateKey: k}); err != nil {
			t.Fatal(err)
		}
	}
	l, err := net.Listen("unix", a.socket)
	if err != nil {
		t.Fatal(err)
	}
	a.listener = l
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			a.mu.Lock()
			a.conns++
			a.mu.Unlock()
			all.Go(func() { defer c.Close(); agent.ServeAgent(&agentOn{a, c}, c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return a
}

// agentOn is the agent on one connection.
type agentOn struct {
	*fakeAgent
	conn net.Conn
}

func (a *agentOn) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	if a.wait != nil {
		a.wait()
	}
	a.mu.Lock()
	a.signed++
	dead := a.dieAfter > 0 && a.signed > a.dieAfter
	a.mu.Unlock()
	if dead {
		a.listener.Close()
		a.conn.Close()
		return nil, errors.New("dead")
	}
	return a.Agent.Sign(key, data)
}

// userKey reads the private key of s for an agent.
func userKey(t *testing.T, path string) any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.ParseRawPrivateKey(data)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// otherKey makes a key that no server knows.
func otherKey(t *testing.T) (path string, private any) {
	t.Helper()
	path, _ = sshtest.WriteKey(t, t.TempDir(), "other", "")
	return path, userKey(t, path)
}

// TestAgent logs in to many hosts with one connection to an agent whose first keys are of no use,
// and finds out which one is. Another one asks which keys are for all hosts.
func TestAgent(t *testing.T) {
	s := sshtest.StartSshd(t)
	_, first := otherKey(t)
	_, second := otherKey(t)
	a := startAgent(t, first, second, userKey(t, s.Key))
	tg := sshdTarget(s)
	tg.Identity = dial.Identity{Agent: a.socket}
	for _, r := range run(t, fanout.Params{}, tg, hosts(30), fleet.Command{Line: "true"}, &sshtest.Told{}) {
		if r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
	}
	if a.conns != 2 || a.signed != 30 {
		t.Errorf("%d connections to the agent and %d signatures, want 2 and 30", a.conns, a.signed)
	}
}

// TestIdentitiesOnly uses of the agent only the key that is named, by its public half alone.
func TestIdentitiesOnly(t *testing.T) {
	s := sshtest.StartSshd(t, "MaxAuthTries 2")
	private := []any{}
	for range 5 {
		_, k := otherKey(t)
		private = append(private, k)
	}
	a := startAgent(t, append(private, userKey(t, s.Key))...)
	tg := sshdTarget(s)
	tg.Identity = dial.Identity{Agent: a.socket, Only: true, Files: []string{s.Key + ".pub"}}
	if r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]; r.Status() != fleet.OK {
		t.Errorf("%+v", r)
	}
	for name, mode := range map[string]os.FileMode{"gone": 0, "open": 0o644} { // of the private key no more than ssh needs
		path := filepath.Join(t.TempDir(), name)
		copyFile(t, s.Key+".pub", path+".pub", 0o600)
		if mode != 0 {
			copyFile(t, s.Key, path, mode)
		}
		tg.Identity.Files = []string{path}
		if r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]; r.Status() != fleet.OK {
			t.Errorf("%s: %+v", name, r)
		}
		alone := tg
		alone.Identity.Agent = ""
		if r := run(t, fanout.Params{}, alone, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]; r.Class != fleet.AuthFailed || !strings.Contains(r.Hint, path) {
			t.Errorf("%s, without the agent: %+v", name, r)
		}
	}
	tg.Identity.Files = []string{s.Key + ".pub"}
	tg.Identity.Only = false // then too many keys would be offered, were the named one not first
	if r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]; r.Status() != fleet.OK {
		t.Errorf("%+v", r)
	}
	tg.Identity.Files = nil
	r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]
	if r.Class != fleet.AuthFailed || !strings.Contains(r.Err, "Too many authentication failures") || r.Hint == "" {
		t.Errorf("%+v", r)
	}
}

// TestSlowAgent: an agent that takes its time holds nobody up for ever, and its answers still
// count.
func TestSlowAgent(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	a := startAgent(t, userKey(t, s.Key))
	a.wait = func() { time.Sleep(20 * time.Millisecond) }
	tg := sshdTarget(s)
	tg.Identity = dial.Identity{Agent: a.socket}
	for _, r := range run(t, fanout.Params{}, tg, hosts(20), fleet.Command{Line: "true"}, &sshtest.Told{}) {
		if r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
	}
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	defer time.AfterFunc(2*time.Minute, release).Stop()
	a.wait = func() { <-answer }
	tg.ConnectTimeout = 300 * time.Millisecond
	start := time.Now()
	r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]
	if r.Class != fleet.TimedOut || time.Since(start) > time.Minute {
		t.Errorf("after %v: %+v", time.Since(start), r)
	}
}

// TestMuteAgent: an agent that never answers costs a run its connect timeout once, and no server is
// blamed for it: key files are used, and where there are none the agent is named.
func TestMuteAgent(t *testing.T) {
	t.Parallel()
	s := sshtest.StartSshd(t)
	socket := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", socket) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	tg := sshdTarget(s)
	for _, files := range [][]string{{s.Key}, nil} {
		waittest.InTime(t, time.Second, func(limit time.Duration) error {
			tg.ConnectTimeout, tg.Identity = limit, dial.Identity{Agent: socket, Files: files}
			var warned []string
			o := dial.Options{Warn: func(text ...string) { warned = append(warned, text...) }}
			r := runWith(t, fanout.Params{}, o, tg, hosts(3), fleet.Command{Line: "true"}, &sshtest.Told{})[0]
			if len(warned) != 1 || !strings.Contains(warned[0], fmt.Sprintf("%s: no answer within %v", socket, limit)) {
				return fmt.Errorf("with files %q: warned %q", files, warned)
			}
			if files != nil && r.Status() != fleet.OK || files == nil && (r.Class != fleet.AuthFailed || !strings.Contains(r.Hint, "no answer within")) {
				return fmt.Errorf("with files %q: %+v", files, r)
			}
			return nil
		})
	}
}

// TestDyingAgent: hosts after the agent's death fail with its name, or use a key file where there
// is one.
func TestDyingAgent(t *testing.T) {
	s := sshtest.StartSshd(t)
	a := startAgent(t, userKey(t, s.Key))
	a.dieAfter = 5
	tg := sshdTarget(s)
	tg.Identity = dial.Identity{Agent: a.socket}
	good, bad := 0, 0
	for _, r := range run(t, fanout.Params{Fanout: 1}, tg, hosts(8), fleet.Command{Line: "true"}, &sshtest.Told{}) {
		switch {
		case r.Status() == fleet.OK:
			good++
		case r.Class == fleet.AuthFailed && strings.Contains(r.Hint, a.socket):
			bad++
		default:
			t.Errorf("%+v", r)
		}
	}
	if good != 5 || bad != 3 {
		t.Errorf("%d good, %d bad, want 5 and 3", good, bad)
	}

	tg.Identity.Files = []string{s.Key} // the agent is gone, the file is not
	for _, r := range run(t, fanout.Params{}, tg, hosts(3), fleet.Command{Line: "true"}, &sshtest.Told{}) {
		if r.Status() != fleet.OK {
			t.Errorf("%+v", r)
		}
	}
}

func TestKeyFiles(t *testing.T) {
	s := sshtest.StartSshd(t)
	dir := t.TempDir()
	locked, pub := sshtest.WriteKey(t, dir, "locked", "secret")
	data, _ := os.ReadFile(filepath.Join(s.Dir, "authorized_keys"))
	if err := os.WriteFile(filepath.Join(s.Dir, "authorized_keys"), append(data, sshtest.AuthorizedLine(pub)...), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := 0
	ask := func(answer string) func(context.Context, string) ([]byte, error) {
		return func(_ context.Context, path string) ([]byte, error) {
			asked++
			if path != locked {
				t.Errorf("asked for %s", path)
			}
			return []byte(answer), nil
		}
	}
	readable := filepath.Join(dir, "readable")
	copyFile(t, s.Key, readable, 0o644)
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		files []string
		ask   func(context.Context, string) ([]byte, error)
		ok    bool
		hint  string
		asked int
	}{
		{name: "missing ones are skipped", files: []string{"/no/such/key", s.Key}, ok: true},
		{name: "only missing ones", files: []string{"/no/such/key"}, hint: "no key to log in with"},
		{name: "encrypted, cannot ask", files: []string{locked}, hint: "is encrypted"},
		{name: "encrypted, asked once", files: []string{locked}, ask: ask("secret"), ok: true, asked: 1},
		{name: "encrypted, wrong answer", files: []string{locked}, ask: ask("wrong"), hint: "locked", asked: 2},
		{name: "readable by others", files: []string{readable}, hint: "chmod 600"},
		{name: "garbage", files: []string{garbage}, hint: "garbage"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			asked = 0
			tg := sshdTarget(s)
			tg.Identity = dial.Identity{Files: test.files}
			for _, r := range runWith(t, fanout.Params{}, dial.Options{Askpass: test.ask}, tg, hosts(4), fleet.Command{Line: "true"}, &sshtest.Told{}) {
				if test.ok != (r.Status() == fleet.OK) || !strings.Contains(r.Hint, test.hint) {
					t.Errorf("%+v", r)
				}
			}
			if asked != test.asked {
				t.Errorf("asked %d times, want %d", asked, test.asked)
			}
		})
	}
}

func copyFile(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, data, mode); err != nil {
		t.Fatal(err)
	}
}

// certify signs a certificate for a key, by the authority in a file.
func certify(t *testing.T, ca string, key ssh.PublicKey, user string) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{Key: key, CertType: ssh.UserCert, ValidPrincipals: []string{user}, ValidBefore: ssh.CertTimeInfinity}
	signer, err := ssh.NewSignerFromKey(userKey(t, ca))
	if err != nil {
		t.Fatal(err)
	}
	if err := cert.SignCert(randReader{}, signer); err != nil {
		t.Fatal(err)
	}
	return cert
}

// TestCertificate logs in with certificates, which no authorized_keys file names: those that ssh
// would use, and with the keys that it would use.
func TestCertificate(t *testing.T) {
	ca, caKey := sshtest.WriteKey(t, t.TempDir(), "ca", "")
	strange, _ := sshtest.WriteKey(t, t.TempDir(), "strange", "")
	caFile := filepath.Join(t.TempDir(), "ca.pub")
	if err := os.WriteFile(caFile, []byte(sshtest.AuthorizedLine(caKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	s := sshtest.StartSshd(t, "TrustedUserCAKeys "+caFile)
	for _, test := range []struct {
		name            string
		beside, instead string // authority of KEY-cert.pub, and of what KEY.pub holds
		named           string // of a CertificateFile
		gone            bool   // the private key is
		agent, only     bool   // holds it; IdentitiesOnly
		nameless        bool   // no IdentityFile
		want            bool
	}{
		{name: "beside", beside: ca, want: true},
		{name: "beside, strange", beside: strange},
		{name: "in place of the public key", instead: ca, want: true},
		{name: "likewise, strange", instead: strange},
		{name: "likewise, signed by the agent", instead: ca, gone: true, agent: true, want: true},
		{name: "likewise, by one that may not", instead: ca, gone: true, agent: true, only: true},
		{name: "named", named: ca, want: true},
		{name: "named, and another one beside", named: strange, beside: ca},
		{name: "named, and another one in place", named: strange, instead: ca, want: true},
		{name: "named, of a key of the agent", named: ca, agent: true, nameless: true, want: true},
		{name: "likewise, that may not", named: ca, agent: true, nameless: true, only: true},
		{name: "likewise, that may", named: ca, agent: true, gone: true, only: true, want: true},
	} {
		path, pub := sshtest.WriteKey(t, t.TempDir(), "user", "")
		tg := sshdTarget(s)
		tg.Identity = dial.Identity{Files: []string{path}, Only: test.only}
		private := userKey(t, path)
		for file, authority := range map[string]string{path + "-cert.pub": test.beside, path + ".pub": test.instead, path + ".named": test.named} {
			if authority == "" {
				continue
			}
			if err := os.WriteFile(file, []byte(sshtest.AuthorizedLine(certify(t, authority, pub, s.User))), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if test.named != "" {
			tg.Identity.Certificates = []string{path + ".named"}
		}
		if test.agent {
			tg.Identity.Agent = startAgent(t, private).socket
		}
		if test.nameless {
			tg.Identity.Files = nil
		}
		if test.gone {
			os.Remove(path)
		}
		if r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]; (r.Status() == fleet.OK) != test.want || !test.want && r.Class != fleet.AuthFailed {
			t.Errorf("%s: %+v", test.name, r)
		}
	}
}

// TestTiedKeys: keys in an agent that are for some hosts only log in there, and are not even
// offered elsewhere.
func TestTiedKeys(t *testing.T) {
	s, other := sshtest.StartSshd(t, "MaxAuthTries 2"), sshtest.StartSshd(t)
	dir := t.TempDir()
	socket, known := filepath.Join(dir, "agent"), filepath.Join(dir, "known")
	text := "here " + sshtest.AuthorizedLine(s.HostKey) + "there " + sshtest.AuthorizedLine(other.HostKey)
	if err := os.WriteFile(known, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := exec.CommandContext(t.Context(), "ssh-agent", "-D", "-a", socket)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Process.Kill(); agent.Wait() })
	waittest.Until(t, "the agent listens", sshtest.Listens("unix", socket))
	add := func(args ...string) {
		t.Helper()
		c := exec.Command("ssh-add", args...)
		c.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	for range 4 {
		path, _ := otherKey(t)
		add("-q", "-H", known, "-h", "there", path)
	}
	add("-q", "-H", known, "-h", s.User+"@here", s.Key)
	tg := sshdTarget(s)
	tg.Identity = dial.Identity{Agent: socket}
	for _, r := range run(t, fanout.Params{}, tg, hosts(5), fleet.Command{Line: "true"}, &sshtest.Told{}) {
		if r.Status() != fleet.OK {
			t.Errorf("%+v", r)
		}
	}
	tg = sshdTarget(other)
	tg.Identity = dial.Identity{Agent: socket, Only: true, Files: []string{s.Key + ".pub"}}
	if r := run(t, fanout.Params{}, tg, hosts(1), fleet.Command{Line: "true"}, &sshtest.Told{})[0]; r.Class != fleet.AuthFailed || !strings.Contains(r.Hint, "other hosts only") {
		t.Errorf("%+v", r)
	}
}

// randReader is enough for a certificate's nonce.
type randReader struct{}

func (randReader) Read(p []byte) (int, error) {
	return io.ReadFull(strings.NewReader(strings.Repeat("r", len(p))), p)
}

// TestJump reaches many hosts through one connection to a bastion.
func TestJump(t *testing.T) {
	bastion := (&sshtest.Server{}).Start(t)
	s := sshtest.StartSshd(t)
	tg := sshdTarget(s)
	jump := target(t, bastion)
	jump.HostName = "127.0.200.1"
	tg.Jump = &jump
	var c sshtest.Told
	for i, r := range run(t, fanout.Params{}, tg, hosts(40), fleet.Command{Line: "echo here"}, &c) {
		if r.Status() != fleet.OK || c.TextOf(i, fleet.Stdout) != "here\n" {
			t.Fatalf("%+v", r)
		}
	}
	if n := bastion.Accepted(); n != 1 {
		t.Errorf("%d connections to the bastion, want 1", n)
	}
}

// TestJumpChain goes through two bastions.
func TestJumpChain(t *testing.T) {
	outer, inner, s := (&sshtest.Server{}).Start(t), (&sshtest.Server{}).Start(t), (&sshtest.Server{}).Start(t)
	first, second, tg := target(t, outer), target(t, inner), target(t, s)
	first.HostName, second.HostName = "127.0.200.1", "127.0.200.2"
	second.Jump, tg.Jump = &first, &second
	for _, r := range run(t, fanout.Params{}, tg, hosts(5), fleet.Command{Line: "x"}, &sshtest.Told{}) {
		if r.Status() != fleet.OK {
			t.Fatalf("%+v", r)
		}
	}
	if outer.Accepted() != 1 || inner.Accepted() != 1 || s.Accepted() != 5 {
		t.Errorf("%d, %d and %d connections", outer.Accepted(), inner.Accepted(), s.Accepted())
	}
}

// TestJumpFaults: what is wrong with the bastion is said to be wrong with it.
func TestJumpFaults(t *testing.T) {
	s := (&sshtest.Server{}).Start(t)
	bastion := (&sshtest.Server{}).Start(t)
	denied := (&sshtest.Server{Deny: true}).Start(t)
	hostile := (&sshtest.Server{ForwardError: "\x1b]0;evil\x07no\n" + strings.Repeat("x", 4000)}).Start(t)
	tests := []struct {
		name  string
		edit  func(tg, jump *dial.Target)
		class fleet.Class
		text  string
	}{
		{"bastion refuses", func(_, j *dial.Target) { j.Port = closedPort(t) }, fleet.Refused, "jump host 127.0.200.1: connect to host"},
		{"bastion denies", func(_, j *dial.Target) { j.Port, j.HostKeys = denied.Port(), fixedKey{denied.HostKey.PublicKey()} }, fleet.AuthFailed, "jump host 127.0.200.1: tester@127.0.200.1: Permission denied"},
		{"bastion unknown", func(_, j *dial.Target) { j.HostKeys = noKey{} }, fleet.HostKeyUnknown, "jump host 127.0.200.1: no host key is known"},
		{"bastion is hostile", func(_, j *dial.Target) { j.Port, j.HostKeys = hostile.Port(), fixedKey{hostile.HostKey.PublicKey()} }, fleet.Refused, "no"},
		{"target refuses", func(tg, _ *dial.Target) { tg.Port = closedPort(t) }, fleet.Refused, "through 127.0.200.1: Connection refused"},
		{"bastion is silent", func(_, j *dial.Target) { j.Port, j.ConnectTimeout = silentPort(t), 300*time.Millisecond }, fleet.TimedOut, "jump host 127.0.200.1: connect to host"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tg, jump := target(t, s), target(t, bastion)
			jump.HostName = "127.0.200.1"
			test.edit(&tg, &jump)
			tg.Jump = &jump
			for _, r := range run(t, fanout.Params{}, tg, hosts(20), fleet.Command{Line: "x"}, &sshtest.Told{}) {
				if r.Class != test.class || !strings.Contains(r.Err, test.text) || r.Status() != fleet.Unreachable || r.Attempts != 1 {
					t.Fatalf("got %+v", r)
				}
				if strings.ContainsAny(r.Err, "\x1b\x07\n") || len(r.Err) > 1100 {
					t.Fatalf("text of the peer as it came: %q", r.Err)
				}
			}
		})
	}
}

// TestLostBastion: when the bastion's connection is cut, its hosts are lost and the next run of the
// same engine connects anew.
func TestLostBastion(t *testing.T) {
	bastion := (&sshtest.Server{}).Start(t)
	s := (&sshtest.Server{Exec: func(x *sshtest.Session) { io.WriteString(x, "started\n"); <-x.Signals }}).Start(t)
	waittest.InTime(t, time.Second, func(limit time.Duration) error {
		cable := through(t, bastion.Port(), relay.Options{})
		tg, jump := target(t, s), target(t, bastion)
		jump.HostName, jump.Port = "127.0.200.1", cable.Port()
		jump.AliveInterval, jump.AliveCountMax = limit, 1
		tg.Jump = &jump
		c := sshtest.Told{OnOutput: func(fleet.Event) error { cable.Freeze(); return nil }}
		r := run(t, fanout.Params{}, tg, []host.Host{{Name: "127.0.9.9"}}, fleet.Command{Line: "x"}, &c)[0]
		if r.Class != fleet.Lost || r.Ran != fleet.RanUnknown {
			return fmt.Errorf("got %+v", r)
		}
		return nil
	})
}
