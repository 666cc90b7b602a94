package knownhosts

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

// outcome names an error of Check and the line that it blames.
func outcome(err error) string {
	v, ok := err.(*Verdict)
	switch {
	case err == nil:
		return "ok"
	case !ok:
		return err.Error()
	case v.Kind == Changed:
		return fmt.Sprintf("changed:%d", v.Lines[0].Line)
	case v.Kind == Revoked:
		return fmt.Sprintf("revoked:%d", v.Lines[0].Line)
	}
	return "unknown"
}

// hostCert certifies key n by authority ca for names, valid for an hour around
// now, and lets change spoil it.
func hostCert(t *testing.T, ca ssh.Signer, n int, names []string, change func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{
		Key: edKey(n).PublicKey(), CertType: ssh.HostCert, KeyId: "test", ValidPrincipals: names,
		ValidAfter: uint64(time.Now().Add(-time.Hour).Unix()), ValidBefore: uint64(time.Now().Add(time.Hour).Unix()),
	}
	if change != nil {
		change(cert)
	}
	if err := cert.SignCert(rand.Reader, ca); err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestCheck(t *testing.T) {
	file := writeFile(t, strings.Join([]string{
		"a " + edLine(1),                             // 1
		"a " + marshalKey(ecKey().PublicKey()),       // 2
		"[a]:2222 " + edLine(2),                      // 3
		"@revoked * " + edLine(9),                    // 4
		"b " + edLine(9),                             // 5
		"*.net,!bad.net " + edLine(3),                // 6
		HashName("h") + " " + edLine(4),              // 7
		HashName("[h]:2222") + " " + edLine(5),       // 8
		"only.ec " + marshalKey(ecKey().PublicKey()), // 9
	}, "\n"))
	x := Open(file)
	for _, c := range []struct {
		host string
		port int
		key  int
		want string
	}{
		{"a", 22, 1, "ok"},
		{"A", 22, 1, "ok"},
		{"a", 22, 2, "changed:1"}, // the line with a key of the same type, though line 2 is known too
		{"a", 2222, 2, "ok"},
		{"a", 2222, 1, "changed:3"}, // no way back to the name without a port
		{"a", 2200, 1, "ok"},        // unknown there, known without a port
		{"a", 2200, 2, "unknown"},
		{"a", 22, 9, "revoked:4"},
		{"b", 22, 9, "revoked:4"},
		{"zz", 2222, 9, "revoked:4"},
		{"zz", 22, 1, "unknown"},
		{"x.net", 22, 3, "ok"},
		{"x.net", 22, 4, "changed:6"},
		{"bad.net", 22, 3, "unknown"},
		{"h", 22, 4, "ok"},
		{"h", 22, 5, "changed:7"},
		{"h", 2222, 5, "ok"},
		{"only.ec", 22, 1, "changed:9"},
	} {
		if got := outcome(x.Check(c.host, c.port, nil, edKey(c.key).PublicKey())); got != c.want {
			t.Errorf("key %d for %s port %d: %s, want %s", c.key, c.host, c.port, got, c.want)
		}
	}
}

func TestCheckCertificates(t *testing.T) {
	ca, other := edKey(100), edKey(101)
	file := writeFile(t, strings.Join([]string{
		"@cert-authority *.x,*.y " + marshalKey(ca.PublicKey()),
		"@revoked gone.x " + edLine(1),
		"@revoked *.y " + marshalKey(ca.PublicKey()),
		"plain.x " + edLine(2),
	}, "\n"))
	x := Open(file)
	for _, c := range []struct {
		about string
		host  string
		cert  *ssh.Certificate
		want  string
	}{
		{"good", "a.x", hostCert(t, ca, 1, []string{"b.x", "a.x"}, nil), "ok"},
		{"pattern", "a.x", hostCert(t, ca, 1, []string{"*.x"}, nil), "unknown"},
		{"no names", "a.x", hostCert(t, ca, 1, nil, nil), "ok"},
		{"other name", "a.x", hostCert(t, ca, 1, []string{"b.x"}, nil), "unknown"},
		{"other authority", "a.x", hostCert(t, other, 1, []string{"a.x"}, nil), "unknown"},
		{"outside the authority's pattern", "a.z", hostCert(t, ca, 1, []string{"a.z"}, nil), "unknown"},
		{"expired", "a.x", hostCert(t, ca, 1, []string{"a.x"}, func(c *ssh.Certificate) { c.ValidBefore = c.ValidAfter + 1 }), "unknown"},
		{"for users", "a.x", hostCert(t, ca, 1, []string{"a.x"}, func(c *ssh.Certificate) { c.CertType = ssh.UserCert }), "unknown"},
		{"critical option", "a.x", hostCert(t, ca, 1, []string{"a.x"}, func(c *ssh.Certificate) { c.CriticalOptions = map[string]string{"x": ""} }), "unknown"},
		{"revoked key", "gone.x", hostCert(t, ca, 1, []string{"gone.x"}, nil), "revoked:2"},
		{"revoked authority", "a.y", hostCert(t, ca, 1, []string{"a.y"}, nil), "revoked:3"},
		{"known key inside a bad certificate", "plain.x", hostCert(t, other, 2, nil, nil), "ok"},
		{"another key inside a bad certificate", "plain.x", hostCert(t, other, 1, nil, nil), "changed:4"},
	} {
		for _, port := range []int{22, 2222} {
			if got := outcome(x.Check(c.host, port, nil, c.cert)); port == 22 && got != c.want || port == 2222 && c.want == "ok" && got != "ok" {
				t.Errorf("%s, port %d: %s, want %s", c.about, port, got, c.want)
			}
		}
	}
	err := x.Check("a.x", 22, nil, edKey(1).PublicKey())
	if unknown, ok := errors.AsType[*Verdict](err); !ok || !strings.Contains(unknown.Reason, file+":1 asks for a certificate") {
		t.Errorf("plain key where only an authority is known: %v", err)
	}
	forged := hostCert(t, ca, 1, []string{"a.x"}, nil)
	forged.ValidPrincipals = []string{"b.x"} // after signing
	if got := outcome(x.Check("b.x", 22, nil, forged)); got != "unknown" {
		t.Errorf("forged certificate: %s", got)
	}
}

func TestMessagesSayWhereAndWhatToDo(t *testing.T) {
	file := writeFile(t, "[db1]:2222 "+edLine(1)+"\n@revoked * "+edLine(9)+"\n")
	x := Open(file)
	remote := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 2222}
	for _, c := range []struct {
		key  int
		host string
		want []string
	}{
		{2, "db1", []string{"[db1]:2222 (10.0.0.1:2222)", file + ":1", ssh.FingerprintSHA256(edKey(1).PublicKey()),
			ssh.FingerprintSHA256(edKey(2).PublicKey()), "ssh-keygen -R '[db1]:2222' -f " + file}},
		{2, "db2", []string{"[db2]:2222", file, ssh.FingerprintSHA256(edKey(2).PublicKey()), "accept-new"}},
		{9, "db1", []string{file + ":2", "REVOKED", ssh.FingerprintSHA256(edKey(9).PublicKey())}},
	} {
		message := x.Check(c.host, 2222, remote, edKey(c.key).PublicKey()).Error()
		for _, want := range c.want {
			if !strings.Contains(message, want) {
				t.Errorf("message lacks %q: %s", want, message)
			}
		}
	}
	// The command that is recommended does what it says.
	changed, _ := errors.AsType[*Verdict](x.Check("db1", 2222, nil, edKey(2).PublicKey()))
	if out, err := exec.Command("sh", "-c", removal(changed.Name, changed.Lines[0].File)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := outcome(x.Check("db1", 2222, nil, edKey(2).PublicKey())); got != "unknown" {
		t.Errorf("after ssh-keygen -R: %s", got)
	}
}

func TestHostKeyAlgorithms(t *testing.T) {
	file := writeFile(t, strings.Join([]string{
		"rsa " + marshalKey(rsaKey().PublicKey()),
		"ec,both " + marshalKey(ecKey().PublicKey()),
		"both " + edLine(1),
		"@cert-authority ca,[*]:2222 " + marshalKey(rsaKey().PublicKey()),
		"bad " + edLine(9),
		"@revoked bad " + edLine(9),
	}, "\n"))
	x := Open(file)
	certs := DefaultHostKeyAlgorithms()[:6]
	for _, c := range []struct {
		host string
		port int
		want []string
	}{
		{"rsa", 22, []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}},
		{"ec", 22, []string{ssh.KeyAlgoECDSA256}},
		{"both", 22, []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256}},
		{"both", 2200, []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256}},
		{"ca", 22, certs},
		{"any", 2222, certs},
		{"bad", 22, []string{}},
		{"unknown", 22, []string{}},
	} {
		if diff := cmp.Diff(c.want, x.HostKeyAlgorithms(c.host, c.port, nil)); diff != "" {
			t.Errorf("%s port %d (-want +got):\n%s", c.host, c.port, diff)
		}
	}
	if diff := cmp.Diff([]string{ssh.KeyAlgoECDSA256}, x.HostKeyAlgorithms("both", 22, []string{ssh.KeyAlgoRSA, ssh.KeyAlgoECDSA256})); diff != "" {
		t.Errorf("own preference:\n%s", diff)
	}
}
