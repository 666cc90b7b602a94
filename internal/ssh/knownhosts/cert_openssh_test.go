package knownhosts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

// certify makes the server present its ed25519 key in a certificate of a new
// authority, whose public key it returns with the certificate.
func (s sshd) certify(t *testing.T, args ...string) (authority string, cert ssh.PublicKey) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca")
	if out, err := keygen("-q", "-t", "ed25519", "-N", "", "-f", ca); err != nil {
		t.Fatal(err, out)
	}
	args = append([]string{"-q", "-s", ca, "-h", "-I", "test"}, args...)
	if out, err := keygen(append(args, filepath.Join(s.dir, "hostkey_ed.pub"))...); err != nil {
		t.Fatal(err, out)
	}
	text, err := os.ReadFile(filepath.Join(s.dir, "hostkey_ed-cert.pub"))
	if err != nil {
		t.Fatal(err)
	}
	cert, _, _, _, err = ssh.ParseAuthorizedKey(text)
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.ReadFile(ca + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(public))
	return fields[0] + " " + fields[1], cert
}

// TestCertificatesAgainstSSH compares the verdict on host certificates with that
// of the real ssh. HostKeyAlias is the name, so that patterns can be tried.
func TestCertificatesAgainstSSH(t *testing.T) {
	s := startSSHD(t, "HostCertificate hostkey_ed-cert.pub")
	plain := s.hostKey(t, "ed")
	for _, c := range []struct {
		about   string
		options []string // of ssh-keygen -s
		known   string   // $CA and $KEY stand for the keys
		want    string
	}{
		{"its name", []string{"-n", "db1.x"}, "@cert-authority *.x $CA", "ok"},
		{"several names", []string{"-n", "a,db1.x"}, "@cert-authority db1.x $CA", "ok"},
		{"a pattern", []string{"-n", "*.x"}, "@cert-authority * $CA", "unknown"},
		{"no names at all", nil, "@cert-authority * $CA", "ok"},
		{"another name", []string{"-n", "db2.x"}, "@cert-authority * $CA", "unknown"},
		{"another name, but a known key", []string{"-n", "db2.x"}, "@cert-authority * $CA\ndb1.x $KEY", "ok"},
		{"another domain", []string{"-n", "db1.x"}, "@cert-authority *.y $CA", "unknown"},
		{"no authority", []string{"-n", "db1.x"}, "", "unknown"},
		{"no authority, but a known key", []string{"-n", "db1.x"}, "db1.x $KEY", "ok"},
		{"another authority", []string{"-n", "db1.x"}, "@cert-authority * " + edLine(7), "unknown"},
		{"expired", []string{"-n", "db1.x", "-V", "20200101:20210101"}, "@cert-authority * $CA", "unknown"},
		{"not yet", []string{"-n", "db1.x", "-V", "20900101:20910101"}, "@cert-authority * $CA", "unknown"},
		{"revoked key", []string{"-n", "db1.x"}, "@cert-authority * $CA\n@revoked * $KEY", "revoked:2"},
		{"revoked authority", []string{"-n", "db1.x"}, "@cert-authority * $CA\n@revoked *.x $CA", "revoked:2"},
		{"revoked elsewhere", []string{"-n", "db1.x"}, "@cert-authority * $CA\n@revoked *.y $CA", "ok"},
	} {
		authority, cert := s.certify(t, c.options...)
		known := strings.NewReplacer("$CA", authority, "$KEY", plain).Replace(c.known)
		file := writeFile(t, known+"\n")
		got := outcome(Open(file).Check("db1.x", 0, nil, cert))
		out, code := s.ssh(t, "127.0.0.1", "UserKnownHostsFile="+file, "HostKeyAlias=db1.x", "HostKeyAlgorithms=ssh-ed25519-cert-v01@openssh.com")
		if got != c.want || (code == 0) != (got == "ok") {
			t.Errorf("%s: Check says %s, want %s; ssh exits with %d:\n%s", c.about, got, c.want, code, out)
		}
	}
}
