package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// certify makes the server present its ed25519 key in a certificate of a new authority, whose
// public key it returns with the certificate.
func certify(t *testing.T, s *sshtest.KeyServer, args ...string) (authority string, cert ssh.PublicKey) {
	t.Helper()
	ca := filepath.Join(t.TempDir(), "ca")
	if out, err := sshtest.Keygen("-q", "-t", "ed25519", "-N", "", "-f", ca); err != nil {
		t.Fatal(err, out)
	}
	public := strings.TrimSuffix(s.Certificate, "-cert.pub") + ".pub" // ssh-keygen names the certificate after it
	if err := os.WriteFile(public, []byte(s.KeyText("ed")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args = append([]string{"-q", "-s", ca, "-h", "-I", "test"}, args...)
	if out, err := sshtest.Keygen(append(args, public)...); err != nil {
		t.Fatal(err, out)
	}
	text, err := os.ReadFile(s.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	caText, err := os.ReadFile(ca + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return knownhosts.MarshalKey(sshtest.ParseKey(t, string(caText))), sshtest.ParseKey(t, string(text))
}

// TestCertificatesAgainstSSH compares the verdict on host certificates with that of the real ssh.
// HostKeyAlias is the name, so that patterns can be tried.
func TestCertificatesAgainstSSH(t *testing.T) {
	s := sshtest.StartKeyServer(t)
	plain := s.KeyText("ed")
	version, err := exec.Command("ssh", "-V").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	release, _ := conf.ParseVersion(string(version))
	newer := release.AtLeast(conf.Version{Major: 10, Minor: 3})
	inside := !release.AtLeast(conf.Version{Major: 9, Minor: 8})
	rules := Rules{Patterns: func() bool { return newer }, Inside: func(string) bool { return inside }} // below the list has the certificate only
	said := map[bool]string{true: "ok", false: "unknown"}
	pattern, insideKnown := said[newer], said[inside]
	for _, c := range []struct {
		about   string
		options []string // of ssh-keygen -s
		known   string   // $CA and $KEY stand for the keys
		want    string
	}{
		{"its name", []string{"-n", "db1.x"}, "@cert-authority *.x $CA", "ok"},
		{"several names", []string{"-n", "a,db1.x"}, "@cert-authority db1.x $CA", "ok"},
		{"a pattern", []string{"-n", "*.x"}, "@cert-authority * $CA", pattern},
		{"a name and a pattern", []string{"-n", "db1.x,*.z"}, "@cert-authority * $CA", "ok"},
		{"a pattern of another domain", []string{"-n", "*.y,d?.x"}, "@cert-authority * $CA", "unknown"},
		{"no names at all", nil, "@cert-authority * $CA", "unknown"},
		{"no names at all, but a known key", nil, "@cert-authority * $CA\ndb1.x $KEY", insideKnown},
		{"another name", []string{"-n", "db2.x"}, "@cert-authority * $CA", "unknown"},
		{"another name, but a known key", []string{"-n", "db2.x"}, "@cert-authority * $CA\ndb1.x $KEY", insideKnown},
		{"another domain", []string{"-n", "db1.x"}, "@cert-authority *.y $CA", "unknown"},
		{"no authority", []string{"-n", "db1.x"}, "", "unknown"},
		{"no authority, but a known key", []string{"-n", "db1.x"}, "db1.x $KEY", insideKnown},
		{"another authority", []string{"-n", "db1.x"}, "@cert-authority * " + sshtest.KeyText(7), "unknown"},
		{"expired", []string{"-n", "db1.x", "-V", "20200101:20210101"}, "@cert-authority * $CA", "unknown"},
		{"not yet", []string{"-n", "db1.x", "-V", "20900101:20910101"}, "@cert-authority * $CA", "unknown"},
		{"revoked key", []string{"-n", "db1.x"}, "@cert-authority * $CA\n@revoked * $KEY", "revoked:2"},
		{"revoked authority", []string{"-n", "db1.x"}, "@cert-authority * $CA\n@revoked *.x $CA", "revoked:2"},
		{"revoked elsewhere", []string{"-n", "db1.x"}, "@cert-authority * $CA\n@revoked *.y $CA", "ok"},
	} {
		authority, cert := certify(t, s, c.options...)
		known := strings.NewReplacer("$CA", authority, "$KEY", plain).Replace(c.known)
		file := sshtest.KnownHostsFile(t, known+"\n")
		got := outcome(Key(index.Open(file), "db1.x", 0, nil, cert, rules))
		out, code := s.SSH(t, "127.0.0.1", "UserKnownHostsFile="+file, "HostKeyAlias=db1.x", "HostKeyAlgorithms=ssh-ed25519-cert-v01@openssh.com")
		stricter := len(c.options) == 0 && !newer // older releases took a certificate without names for any host
		if got != c.want || (code == 0) != (got == "ok") && !stricter {
			t.Errorf("%s: Check says %s, want %s; ssh exits with %d:\n%s", c.about, got, c.want, code, out)
		}
	}
}
