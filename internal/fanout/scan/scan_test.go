package scan

import (
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/netip"
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
	"sshpace/internal/fanout"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshfp"
	"sshpace/internal/ssh/sshtest"
)

// scanned looks at hosts, under lines of ssh_config and an empty known_hosts file, which is named
// known in the same directory, unless text is given for it.
type scanned struct {
	config, known string // files
	dns           sshfp.Resolver
}

func newScanned(t *testing.T, known, config string) scanned {
	t.Helper()
	dir := t.TempDir()
	s := scanned{config: filepath.Join(dir, "config"), known: filepath.Join(dir, "known")}
	config += fmt.Sprintf("\nHost *\nUserKnownHostsFile %s\nGlobalKnownHostsFile none\nIdentityAgent none\nConnectTimeout 20\n", s.known)
	for file, text := range map[string]string{s.config: config, s.known: known} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// run looks at the hosts, and returns the review, too.
func (s scanned) run(t *testing.T, p Params, hosts ...host.Host) (Report, string) {
	t.Helper()
	params := reach.Params{Params: route.Params{Getenv: os.Getenv, Flags: conf.Flags{Config: s.config}, Strict: true}, Engine: reach.Native, KeysOnly: true, DNS: s.dns}
	e, err := reach.New(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	p.Progress = func(int, int) {}
	report, err := Run(t.Context(), p, hosts, e)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	report.Review(&text)
	return report, text.String()
}

func (s scanned) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(s.known)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// at is a host at a port of this machine.
func at(name string, port int) host.Host {
	return host.Host{Name: name, Address: "127.0.0.1", Port: uint16(port)}
}

func list(t *testing.T, lines ...string) *List {
	t.Helper()
	l, err := ReadList("list", []byte(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// statesOf are the states of all keys, in their order.
func statesOf(r Report) (all []State) {
	for _, h := range r {
		for _, k := range h.Keys {
			all = append(all, k.State)
		}
	}
	return all
}

func record(t *testing.T, r Report) int {
	t.Helper()
	added, err := reach.Record(r.Looks())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, lines := range added {
		n += lines
	}
	return n
}

// TestAsKeyscan: the keys are those of ssh-keyscan. Those that a list confirms are recorded, each
// once, and then known; ssh logs in by them. The others are not.
func TestAsKeyscan(t *testing.T) {
	t.Parallel()
	server := sshtest.StartKeyServer(t)
	s := newScanned(t, "", "")
	one := at("web1", server.Port)
	report, review := s.run(t, Params{All: true}, one, at("web2", server.Port))
	out, err := exec.Command("ssh-keyscan", "-p", fmt.Sprint(server.Port), "127.0.0.1").Output()
	if err != nil {
		t.Fatal(err)
	}
	var ours []string
	for _, k := range report[0].look.Keys(t.Context()) {
		ours = append(ours, fmt.Sprintf("[127.0.0.1]:%d %s", server.Port, knownhosts.MarshalKey(k)))
	}
	theirs := slices.Collect(strings.Lines(strings.TrimSpace(string(out))))
	for i := range theirs {
		theirs[i] = strings.TrimSpace(theirs[i])
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	if len(ours) != 2 || !slices.Equal(ours, theirs) {
		t.Errorf("we: %q\nssh-keyscan: %q", ours, theirs)
	}
	if n := strings.Count(review, "  web[1-2]\n"); n != 2 || report[0].Name != report[1].Name || record(t, report) != 0 || s.text(t) != "" {
		t.Errorf("nobody has confirmed them: %s\n%s", review, s.text(t))
	}
	half, _ := s.run(t, Params{All: true, List: list(t, "web1 "+report[0].Keys[0].Fingerprint)}, one)
	if !slices.Equal(statesOf(half), []State{Confirmed, Unconfirmed}) { // which type the list means is known once it is shown
		t.Errorf("one of them listed: %v", statesOf(half))
	}
	for _, all := range []bool{false, true} { // one key of a host, then one more
		l := list(t, "web1: "+report[0].Keys[0].Fingerprint, "web1,other "+report[0].Keys[1].Fingerprint)
		got, review := s.run(t, Params{All: all, List: l}, one)
		if n := record(t, got); n != 1 || got.Verdict() != nil || record(t, got) != 0 {
			t.Errorf("all types %v: %d recorded: %s", all, n, review)
		}
	}
	if got, _ := s.run(t, Params{All: true}, one); !slices.Equal(statesOf(got), []State{Known, Known}) || strings.Count(s.text(t), "\n") != 2 {
		t.Errorf("then: %v\n%s", statesOf(got), s.text(t))
	}
	for _, kind := range []string{"ssh-ed25519", "ecdsa-sha2-nistp256"} {
		if out, code := server.SSH(t, "127.0.0.1", "UserKnownHostsFile="+s.known, "HostKeyAlgorithms="+kind); code != 0 {
			t.Errorf("ssh: %s", out)
		}
	}
}

// TestNotTrusted: a changed key, one that the list contradicts, that it has for another host, or
// that is revoked, is shown first, and never recorded.
func TestNotTrusted(t *testing.T) {
	t.Parallel()
	server, other := (&sshtest.Server{}).Start(t), sshtest.NewKey(t).PublicKey()
	shown := server.HostKey.PublicKey()
	name := fmt.Sprintf("[127.0.0.1]:%d ", server.Port())
	for what, c := range map[string]struct {
		known string
		list  []string
		state State
		says  string
	}{
		"changed":            {name + knownhosts.MarshalKey(other), nil, Changed, "CHANGED: web: "},
		"changed, as listed": {name + knownhosts.MarshalKey(other), []string{"web " + ssh.FingerprintSHA256(shown)}, Changed, "the new one is that of list:1"},
		"revoked":            {"@revoked * " + knownhosts.MarshalKey(shown), []string{"web " + ssh.FingerprintSHA256(shown)}, Revoked, "REVOKED: web: "},
		"not as listed":      {"", []string{"web " + ssh.FingerprintSHA256(other)}, Contradicted, "NOT AS LISTED: web: "},
		"known, not as listed": {name + knownhosts.MarshalKey(shown), []string{"256 " + ssh.FingerprintSHA256(other) + " root@web (ED25519)"},
			Contradicted, "NOT AS LISTED: web: "},
		"listed for another": {"", []string{"db " + ssh.FingerprintSHA256(shown)}, Unconfirmed, "  web: list:1 has it for db"},
		"of another type":    {"", []string{"web ssh-rsa " + ssh.FingerprintSHA256(other)}, Unconfirmed, "confirmed by nobody"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScanned(t, c.known, "")
			p := Params{}
			if c.list != nil {
				p.List = list(t, c.list...)
			}
			report, review := s.run(t, p, at("web", server.Port()))
			if got := statesOf(report); len(got) != 1 || got[0] != c.state || !strings.Contains(review, c.says) || report.Verdict() == nil {
				t.Errorf("%v: %s", got, review)
			}
			if record(t, report) != 0 || s.text(t) != c.known {
				t.Errorf("known_hosts is %q", s.text(t))
			}
		})
	}
}

// TestCertificate: the certificate of an authority in known_hosts confirms the key inside, that of
// another authority does not.
func TestCertificate(t *testing.T) {
	t.Parallel()
	server, authority := sshtest.StartKeyServer(t), sshtest.NewKey(t)
	cert := &ssh.Certificate{Key: server.HostKey, CertType: ssh.HostCert, ValidBefore: ssh.CertTimeInfinity, ValidPrincipals: []string{"127.0.0.1"}}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(server.Certificate, []byte(sshtest.AuthorizedLine(cert)), 0o600); err != nil {
		t.Fatal(err)
	}
	for known, want := range map[string]State{
		"@cert-authority * " + knownhosts.MarshalKey(authority.PublicKey()) + "\n":             Confirmed,
		"@cert-authority other.example " + knownhosts.MarshalKey(authority.PublicKey()) + "\n": Unconfirmed,
		"@cert-authority * " + knownhosts.MarshalKey(sshtest.NewKey(t).PublicKey()) + "\n":     Unconfirmed,
	} {
		s := newScanned(t, known, "HashKnownHosts yes")
		report, review := s.run(t, Params{}, at("web", server.Port))
		if got := statesOf(report); !slices.Equal(got, []State{want}) {
			t.Errorf("%v, want %s: %s", got, want, review)
		}
		record(t, report)
		if added := strings.TrimPrefix(s.text(t), known); (added != "") != (want == Confirmed) || added != "" && !strings.HasPrefix(added, "|1|") ||
			added != "" && !strings.Contains(added, knownhosts.MarshalKey(server.HostKey)) {
			t.Errorf("%s: added %q", want, added)
		}
	}
}

// TestDNS: a record of the DNS confirms a key only if it is validated, the resolver is trusted, and
// VerifyHostKeyDNS is yes; a validated one of another key is reported first.
func TestDNS(t *testing.T) {
	t.Parallel()
	server := (&sshtest.Server{}).Start(t)
	shown, other := server.HostKey.PublicKey(), sshtest.NewKey(t).PublicKey()
	known := fmt.Sprintf("[localhost]:%d %s\n", server.Port(), knownhosts.MarshalKey(shown))
	right := sshtest.StartResolver(t, false, sshtest.SSHFP(t, "localhost.", shown))
	wrong := sshtest.StartResolver(t, false, sshtest.SSHFP(t, "localhost.", other))
	forged := sshtest.StartResolver(t, true, sshtest.SSHFP(t, "localhost.", shown))
	for what, c := range map[string]struct {
		server     netip.AddrPort
		distrusted bool
		verify     string
		known      string
		list       ssh.PublicKey
		state      State
		says       string
	}{
		"confirmed":            {right, false, "yes", "", nil, Confirmed, "1 new and confirmed"},
		"no trust":             {right, true, "yes", "", nil, Unconfirmed, "the DNS has it (SSHFP), not validated"},
		"ask":                  {right, false, "ask", "", nil, Unconfirmed, "VerifyHostKeyDNS is ask"},
		"no":                   {right, false, "no", "", nil, Unconfirmed, fmt.Sprintf("localhost:%d\n", server.Port())},
		"known":                {right, false, "yes", known, nil, Known, "1 known"},
		"wrong":                {wrong, false, "yes", "", nil, Contradicted, ": validated SSHFP records in the DNS are of another key"},
		"wrong, no trust":      {wrong, true, "yes", "", nil, Unconfirmed, "not validated, are of another key"},
		"wrong, but known":     {wrong, false, "yes", known, nil, Contradicted, "NOT AS LISTED"},
		"wrong, but listed":    {wrong, false, "yes", "", shown, Contradicted, "NOT AS LISTED"},
		"right, not as listed": {right, false, "yes", "", other, Contradicted, "NOT AS LISTED"},
		"no trust, but listed": {right, true, "yes", "", shown, Confirmed, "1 new and confirmed"},
		"forged":               {forged, false, "yes", "", nil, Unconfirmed, "the name server answers ServerFailure"},
	} {
		t.Run(what, func(t *testing.T) {
			s := newScanned(t, c.known, "VerifyHostKeyDNS "+c.verify)
			s.dns = sshfp.Resolver{Servers: []netip.AddrPort{c.server}, Trusted: !c.distrusted}
			p := Params{}
			if c.list != nil {
				p.List = list(t, "localhost ssh-ed25519 "+ssh.FingerprintSHA256(c.list))
			}
			report, review := s.run(t, p, host.Host{Name: "localhost", Port: uint16(server.Port())})
			if got := statesOf(report); !slices.Equal(got, []State{c.state}) || !strings.Contains(review, c.says) {
				t.Errorf("%v: %s", got, review)
			}
			if n := record(t, report); (n == 1) != (c.state == Confirmed) {
				t.Errorf("%d recorded", n)
			}
		})
	}
}

// TestJumps: a host behind a jump host whose key is known is looked at; another jump host is
// reported, and not recorded whatever ssh_config says.
func TestJumps(t *testing.T) {
	t.Parallel()
	server, jump := (&sshtest.Server{}).Start(t), sshtest.StartSshd(t)
	config := fmt.Sprintf("StrictHostKeyChecking accept-new\nHost gate\nHostName 127.0.0.1\nPort %d\nUser %s\nIdentityFile %s\nHost web\nHostName 127.0.0.1\nPort %d\nHostKeyAlias Web\nProxyJump gate\n"+
		"Host proxied\nProxyCommand true\n", jump.Port, jump.User, jump.Key, server.Port())
	known := fmt.Sprintf("[127.0.0.1]:%d %s\n", jump.Port, knownhosts.MarshalKey(jump.HostKey))
	s := newScanned(t, known, config)
	report, review := s.run(t, Params{}, host.Host{Name: "web"}, host.Host{Name: "proxied"})
	if !slices.Equal(statesOf(report), []State{Unconfirmed}) || report[0].Name != "web" || !strings.Contains(review, "proxied (1) =: ") || !strings.Contains(review, "only ssh itself") {
		t.Errorf("%s %+v", review, report[0])
	}
	if s.text(t) != known {
		t.Errorf("recorded: %s", s.text(t))
	}
	s = newScanned(t, "", config)
	report, review = s.run(t, Params{}, host.Host{Name: "web"})
	if report[0].Class != "hostkey_unknown" || !strings.Contains(review, "jump host 127.0.0.1: host key") || s.text(t) != "" {
		t.Errorf("%s %+v %q", review, report[0], s.text(t))
	}
}

// TestHostileServers: hosts that hang in each phase, flood, close at once or speak another language
// are reported, and do not hold up the others.
func TestHostileServers(t *testing.T) {
	t.Parallel()
	hang := func(p *sshtest.Peer) { <-p.End }
	says := func(answer func(net.Conn)) int { return sshtest.Answering(t, answer).Port }
	flood := strings.Repeat("welcome to this host\r\n", 1<<10)
	ports := []int{
		says(func(c net.Conn) { io.Copy(io.Discard, c) }),
		says(func(net.Conn) {}),
		says(func(c net.Conn) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(c, flood)
			}
		}),
		says(func(c net.Conn) {
			for err := error(nil); err == nil; {
				_, err = io.WriteString(c, strings.Repeat("x", 1<<16))
			}
		}),
		says(func(c net.Conn) { io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") }),
		(&sshtest.Hostile{At: sshtest.AtVersion, Do: hang, HostKey: sshtest.NewKey(t)}).Start(t),
		(&sshtest.Hostile{At: sshtest.AtVersion, Do: func(p *sshtest.Peer) { p.Send([]byte{20}); <-p.End }, HostKey: sshtest.NewKey(t)}).Start(t),
	}
	s := newScanned(t, "", "ConnectTimeout 2")
	var hosts []host.Host
	for i, port := range ports {
		hosts = append(hosts, at(fmt.Sprintf("bad%d", i), port))
	}
	good := (&sshtest.Server{}).Start(t)
	began := time.Now()
	report, review := s.run(t, Params{Fanout: fanout.Params{RetryFor: -1}}, append(hosts, at("good", good.Port()))...)
	for _, h := range report[:len(ports)] {
		if h.Class == "" || h.Err == "" || len(h.Keys) > 0 {
			t.Errorf("%+v", h)
		}
	}
	if len(report[len(ports)].Keys) != 1 || strings.Count(review, "\n") > 20 || time.Since(began) > time.Minute {
		t.Errorf("after %s: %s", time.Since(began), review)
	}
	if s.text(t) != "" {
		t.Error("recorded something")
	}
}

// TestAnotherKeyEachTime: of a host that shows another key each time only the one is recorded that
// is confirmed.
func TestAnotherKeyEachTime(t *testing.T) {
	t.Parallel()
	keys, n := []ssh.Signer{sshtest.Key(1), sshtest.Key(2)}, atomic.Int32{}
	port := sshtest.Answering(t, func(c net.Conn) {
		config := &ssh.ServerConfig{NoClientAuth: true}
		config.AddHostKey(keys[int(n.Add(1)-1)%len(keys)])
		_, _, _, _ = ssh.NewServerConn(c, config)
	}).Port
	s := newScanned(t, "", "")
	l := list(t, "web "+ssh.FingerprintSHA256(keys[0].PublicKey()))
	for _, want := range []State{Confirmed, Changed, Known, Changed} {
		report, review := s.run(t, Params{List: l}, at("web", port))
		if got := statesOf(report); !slices.Equal(got, []State{want}) {
			t.Errorf("%v, want %s: %s", got, want, review)
		}
		record(t, report)
	}
	if text := s.text(t); strings.Count(text, "\n") != 1 || !strings.Contains(text, sshtest.KeyText(1)) {
		t.Errorf("recorded: %s", text)
	}
}

// TestTriedAgain: a host that turns connections away between those for its keys shows all of them
// in the end.
func TestTriedAgain(t *testing.T) {
	t.Parallel()
	config, n := &ssh.ServerConfig{NoClientAuth: true}, atomic.Int32{}
	for _, key := range []ssh.Signer{sshtest.Key(1), sshtest.ECKey(), sshtest.RSAKey()} {
		config.AddHostKey(key)
	}
	port := sshtest.Answering(t, func(c net.Conn) {
		if n.Add(1)%2 == 1 {
			_, _, _, _ = ssh.NewServerConn(c, config)
		}
	}).Port
	report, review := newScanned(t, "", "").run(t, Params{All: true}, at("web", port))
	if len(report[0].Keys) != 3 || report[0].Class != "" || n.Load() != 5 {
		t.Errorf("%d connections: %s", n.Load(), review)
	}
}

// TestManyHosts: many addresses of one machine show one key, on one line, and are confirmed by a
// list and written at once.
func TestManyHosts(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	config := &ssh.ServerConfig{NoClientAuth: true}
	config.AddHostKey(sshtest.Key(1))
	sshtest.Answer(t, l, func(c net.Conn) { _, _, _, _ = ssh.NewServerConn(c, config) })
	var hosts []host.Host
	var lines []string
	for i := range 300 {
		h := host.Host{Name: fmt.Sprintf("127.0.%d.%d", 30+i/100, 1+i%100), Port: uint16(l.Addr().(*net.TCPAddr).Port)}
		hosts, lines = append(hosts, h), append(lines, h.Name+" "+ssh.FingerprintSHA256(sshtest.Key(1).PublicKey()))
	}
	s := newScanned(t, "", "")
	_, review := s.run(t, Params{}, hosts...)
	if strings.Count(review, "SHA256:") != 1 || !strings.Contains(review, "127.0.[30-32].[1-100]:") || !strings.Contains(review, "one key of 300 hosts") {
		t.Error(review)
	}
	report, review := s.run(t, Params{List: list(t, lines...)}, hosts...)
	if n := record(t, report); n != len(hosts) || report.Verdict() != nil {
		t.Errorf("%d recorded: %s", n, review)
	}
}
