package hub

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/fanout/job"
)

// certificate makes a certificate for 127.0.0.1, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "hub"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	text, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	keyText, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "hub.crt"), filepath.Join(dir, "hub.key")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: text}, key: {Type: "PRIVATE KEY", Bytes: keyText}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// A hub at a port is reached by TLS, by whom knows its certificate and has a credential.
func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	s := serve(t, job.Serving{Listen: "127.0.0.1:0", Certificate: cert, Key: key})
	port := s.doors[1].Addr().String()
	creds := credentialFile(t, s.params.Dir, job.RoleClient, time.Hour)
	b, err := NATS{}.Dial(t.Context(), job.Address{Role: job.RoleClient, URL: "tls://" + port, Credential: creds, Roots: cert})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.Put(soon(t), job.Entry{Subject: "job.web.j-1.0"}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		a    job.Address
		want string
	}{
		{job.Address{URL: "tls://" + port, Credential: creds}, "unknown authority"},
		{job.Address{URL: "tls://" + port, Credential: creds, Roots: key}, "has no certificate"},
		{job.Address{URL: "nats://192.0.2.1:4222", Credential: creds}, "on another machine"},
		{job.Address{URL: "nats://" + port, Credential: creds}, "EOF"},
	} {
		c.a.Role = job.RoleClient
		if _, err := (NATS{}).Dial(t.Context(), c.a); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.a, err, c.want)
		}
	}
}

// A hub that cannot start says why, and leaves nothing behind that keeps the next one away.
func TestCannotStart(t *testing.T) {
	t.Parallel()
	s := serve(t, job.Serving{Listen: "127.0.0.1:0"})
	open := filepath.Join(t.TempDir(), "open")
	if err := os.Mkdir(open, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, keysFile), []byte("x\ny\nz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		p    job.Serving
		want string
	}{
		{job.Serving{Dir: s.params.Dir}, "a hub runs with this directory already"},
		{job.Serving{Dir: t.TempDir(), Listen: s.doors[1].Addr().String()}, "address already in use"},
		{job.Serving{Dir: t.TempDir(), Listen: ":4222"}, "is open to other machines"},
		{job.Serving{Dir: t.TempDir(), Listen: "127.0.0.1:0", Certificate: "/nonexistent/x"}, "no such file"},
		{job.Serving{Dir: filepath.Join(t.TempDir(), strings.Repeat("long", 40))}, "too long for a socket"},
		{job.Serving{Dir: open}, "can be"},
		{job.Serving{Dir: broken}, "line 1"},
	} {
		for range 2 {
			if _, err := (NATS{}).Serve(t.Context(), c.p); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, want %s", c.p, err, c.want)
			}
		}
	}
}

// What a hub has kept is there when it is started again, with other limits, too.
func TestStartsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 3 {
		s := serve(t, job.Serving{Dir: dir, Limits: job.Limits{Bytes: int64(10+i) << 20}})
		b := busOf(t, s, job.LauncherRole("web"))
		if _, err := b.Append(soon(t), job.Entry{Subject: event}, uint64(i), ""); err != nil {
			t.Error(err)
		}
		status, err := b.(*bus).nc.Request("$JS.API.DIRECT.GET.EVENTS."+event, nil, time.Second)
		if err != nil || status.Header.Get("Nats-Sequence") != string(rune('1'+i)) {
			t.Errorf("%v %v", status, err)
		}
		b.Close()
		s.Close()
	}
	if info, err := os.Stat(filepath.Join(dir, keysFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the keys: %v %v", info, err)
	}
}
