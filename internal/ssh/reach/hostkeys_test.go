package reach

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/check"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

func newSigner(t *testing.T) ssh.Signer {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// TestAcceptNewCertificate: what is recorded is a key, never a certificate, and nothing where an
// authority is asked for, whose certificate is then not valid.
func TestAcceptNewCertificate(t *testing.T) {
	authority, key := newSigner(t), newSigner(t).PublicKey()
	now := uint64(time.Now().Unix())
	for _, test := range []struct {
		name, known string
		cert        ssh.Certificate
		err         string // "" = accepted and recorded
	}{
		{"expired", "*", ssh.Certificate{ValidBefore: now - 60, ValidPrincipals: []string{"db1"}}, "expired"},
		{"another principal", "db1", ssh.Certificate{ValidBefore: now + 60, ValidPrincipals: []string{"db2"}}, "principal"},
		{"authority of the name without the port", "db1", ssh.Certificate{ValidBefore: now - 60, ValidPrincipals: []string{"db1"}}, "expired"},
		{"no principals", "db1", ssh.Certificate{ValidBefore: now + 60}, "of no host"},
		{"authority of other names", "*.x", ssh.Certificate{ValidBefore: now - 60, ValidPrincipals: []string{"db1"}}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			cert := test.cert
			cert.Key, cert.CertType = key, ssh.HostCert
			if err := cert.SignCert(rand.Reader, authority); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "known_hosts")
			public := authority.PublicKey()
			line := "@cert-authority " + test.known + " " + public.Type() + " " + base64.StdEncoding.EncodeToString(public.Marshal()) + "\n"
			if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
			k := &hostKeys{index: index.Open(file), acceptNew: true, file: file}
			err := k.Check(t.Context(), "db1", 2222, nil, &cert)
			text, _ := os.ReadFile(file)
			added := strings.TrimPrefix(string(text), line)
			switch {
			case test.err == "" && (err != nil || !strings.Contains(added, base64.StdEncoding.EncodeToString(key.Marshal()))):
				t.Errorf("%v, the file has %q more", err, added)
			case test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err) || added != ""):
				t.Errorf("%v, want %q; the file has %q more", err, test.err, added)
			}
		})
	}
}

// TestForeignHostKey: a host of which only a key is known that ssh alone can check has not changed.
func TestForeignHostKey(t *testing.T) {
	const kind = "ssh-future@example.com"
	file := filepath.Join(t.TempDir(), "known_hosts")
	blob := base64.StdEncoding.EncodeToString(ssh.Marshal(struct{ Type, Key string }{kind, "of tomorrow"}))
	put(t, file, "db1 "+kind+" "+blob+"\n", 0o600)
	for allowed, want := range map[string]fleet.Class{kind: fleet.HostKeyUnknown, ssh.KeyAlgoED25519: fleet.HostKeyChanged} {
		k := &hostKeys{index: index.Open(file), allowed: []string{allowed}}
		err, _ := errors.AsType[*dial.Error](k.Check(t.Context(), "db1", 22, nil, newSigner(t).PublicKey()))
		if err == nil || err.Class != want || err.OnlySSH != (allowed == kind) || !strings.Contains(err.Text, kind) {
			t.Errorf("%s: %+v", allowed, err)
		}
	}
}

// TestVerdictIsTheCause: what was found about a key reaches the result as it is, whatever else is
// known of the host.
func TestVerdictIsTheCause(t *testing.T) {
	server := sshtest.StartSshd(t)
	key, other := knownhosts.MarshalKey(server.HostKey), knownhosts.MarshalKey(newSigner(t).PublicKey())
	name := knownhosts.HostPort("127.0.0.1", server.Port) + " "
	for _, c := range []struct {
		known string
		kind  check.Kind
		class fleet.Class
		line  int
	}{
		{name + key + "\n@revoked * " + key, check.Revoked, fleet.HostKeyRevoked, 2},
		{name + other + "\n@revoked * " + key, check.Revoked, fleet.HostKeyRevoked, 2},
		{name + other, check.Changed, fleet.HostKeyChanged, 1},
		{"elsewhere " + key, check.Unknown, fleet.HostKeyUnknown, 0},
	} {
		file := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(file, []byte(c.known+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, engine := range []Engine{Native, OpenSSH} {
			o := runTrue(t, server, engine, file)
			if o.Class != c.class || o.Hint == "" {
				t.Errorf("%s: %q is %v, want %v; hint %q", engine, c.known, o.Class, c.class, o.Hint)
			}
			v, found := errors.AsType[*check.Verdict](o.Cause)
			if engine == Native && (!found || v.Kind != c.kind || v.Name != strings.TrimSpace(name) || c.line > 0 && v.Lines[0].Line != c.line || o.Hint != v.Hint()) {
				t.Errorf("%q: cause %+v", c.known, v)
			}
		}
	}
}

// runTrue runs true on a server by what a file knows.
func runTrue(t *testing.T, server *sshtest.Sshd, engine Engine, known string) fleet.Result {
	t.Helper()
	return try(t, server, engine, []string{"UserKnownHostsFile=" + known, "GlobalKnownHostsFile=none", "IdentityAgent=none", "IdentityFile=" + server.Key})
}

// try runs true on a server under settings.
func try(t *testing.T, server *sshtest.Sshd, engine Engine, settings []string) fleet.Result {
	t.Helper()
	return tryAll(t, server, engine, settings, []host.Host{{Name: "127.0.0.1"}}, "true")[0]
}

// tryAll runs a line on a server under several names, one after the other.
func tryAll(t *testing.T, server *sshtest.Sshd, engine Engine, settings []string, hosts []host.Host, line string) []fleet.Result {
	t.Helper()
	return tryWith(t, server, engine, settings, hosts, line, fanout.Params{Fanout: 1})
}

// tryWith is tryAll by parameters of a run.
func tryWith(t *testing.T, server *sshtest.Sshd, engine Engine, settings []string, hosts []host.Host, line string, by fanout.Params) []fleet.Result {
	t.Helper()
	p := Params{Params: route.Params{Getenv: os.Getenv}, Engine: engine}
	p.Flags = conf.Flags{Config: "none", Port: uint16(server.Port), User: server.User, Settings: settings}
	executor, err := New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	defer executor.Close()
	sink := &sshtest.Told{}
	if _, err := fanout.Run(t.Context(), by, hosts, fleet.Command{Line: line}, executor, sink); err != nil {
		t.Fatal(err)
	}
	return sink.Results()
}

// TestRevokedPipe: a list of revoked keys that each ssh would wait for is refused at once.
func TestRevokedPipe(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "revoked")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	r := try(t, &sshtest.Sshd{Port: 1, User: "nobody"}, Auto, []string{"RevokedHostKeys=" + pipe})
	if r.Class != fleet.Local || r.Err != "RevokedHostKeys "+pipe+" is a pipe" || r.Hint == "" {
		t.Errorf("%+v", r)
	}
}

// TestForeignCertificate: where a certificate would do, the types that ssh alone takes are named,
// so that a server with such a certificate is not judged by its plain keys; but no ssh that records
// keys is asked.
func TestForeignCertificate(t *testing.T) {
	const kind = "ssh-mldsa44-ed25519-cert-v01@openssh.com"
	authority, file := knownhosts.MarshalKey(newSigner(t).PublicKey()), filepath.Join(t.TempDir(), "known_hosts")
	for _, test := range []struct {
		line, want string
		acceptNew  bool
	}{{"@cert-authority * ", kind, false}, {"@cert-authority * ", "", true}, {"elsewhere ", "", false}} {
		put(t, file, test.line+authority+"\n", 0o600)
		k := &hostKeys{index: index.Open(file), acceptNew: test.acceptNew, allowed: []string{kind, ssh.CertAlgoED25519v01, "ssh-mldsa44-ed25519@openssh.com", ssh.KeyAlgoED25519}}
		err, _ := errors.AsType[*dial.Error](k.Check(t.Context(), "db1", 22, nil, newSigner(t).PublicKey()))
		if err == nil || err.Class != fleet.HostKeyUnknown || err.OnlySSH || strings.Join(err.Lacking, " ") != test.want {
			t.Errorf("%+v: %+v", test, err)
		}
	}
}
