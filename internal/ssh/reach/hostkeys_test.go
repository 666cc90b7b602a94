package reach

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/knownhosts/index"
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

// TestAcceptNewCertificate: what is recorded is a key, never a certificate, and
// nothing where an authority is asked for, whose certificate is then not valid.
func TestAcceptNewCertificate(t *testing.T) {
	authority, key := newSigner(t), newSigner(t).PublicKey()
	now := uint64(time.Now().Unix())
	for _, test := range []struct {
		name, known string
		cert        ssh.Certificate
		err         string // "" = accepted and recorded
	}{
		{"expired", "*", ssh.Certificate{ValidBefore: now - 60}, "expired"},
		{"another principal", "db1", ssh.Certificate{ValidBefore: now + 60, ValidPrincipals: []string{"db2"}}, "principal"},
		{"authority of the name without the port", "db1", ssh.Certificate{ValidBefore: now - 60}, "expired"},
		{"authority of other names", "*.x", ssh.Certificate{ValidBefore: now - 60}, ""},
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
			err := k.Check("db1", 2222, nil, &cert)
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
