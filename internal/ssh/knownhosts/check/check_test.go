package check

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
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

// hostCert certifies key n by authority ca for names, valid for an hour around now, and lets change
// spoil it.
func hostCert(t *testing.T, ca ssh.Signer, n int, names []string, change func(*ssh.Certificate)) *ssh.Certificate {
	t.Helper()
	cert := &ssh.Certificate{
		Key: sshtest.Key(n).PublicKey(), CertType: ssh.HostCert, KeyId: "test", ValidPrincipals: names,
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
	file := sshtest.KnownHostsFile(t, strings.Join([]string{
		"a " + sshtest.KeyText(1),                                       // 1
		"a " + knownhosts.MarshalKey(sshtest.ECKey().PublicKey()),       // 2
		"[a]:2222 " + sshtest.KeyText(2),                                // 3
		"@revoked * " + sshtest.KeyText(9),                              // 4
		"b " + sshtest.KeyText(9),                                       // 5
		"*.net,!bad.net " + sshtest.KeyText(3),                          // 6
		knownhosts.HashName("h") + " " + sshtest.KeyText(4),             // 7
		knownhosts.HashName("[h]:2222") + " " + sshtest.KeyText(5),      // 8
		"only.ec " + knownhosts.MarshalKey(sshtest.ECKey().PublicKey()), // 9
	}, "\n"))
	x := index.Open(file)
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
		if got := outcome(Key(x, c.host, c.port, nil, sshtest.Key(c.key).PublicKey(), Rules{})); got != c.want {
			t.Errorf("key %d for %s port %d: %s, want %s", c.key, c.host, c.port, got, c.want)
		}
	}
}

func TestCheckCertificates(t *testing.T) {
	ca, other := sshtest.Key(100), sshtest.Key(101)
	file := sshtest.KnownHostsFile(t, strings.Join([]string{
		"@cert-authority *.x,*.y " + knownhosts.MarshalKey(ca.PublicKey()),
		"@revoked gone.x " + sshtest.KeyText(1),
		"@revoked *.y " + knownhosts.MarshalKey(ca.PublicKey()),
		"plain.x " + sshtest.KeyText(2),
	}, "\n"))
	x := index.Open(file)
	for _, c := range []struct {
		about string
		host  string
		cert  *ssh.Certificate
		want  string
	}{
		{"good", "a.x", hostCert(t, ca, 1, []string{"b.x", "a.x"}, nil), "ok"},
		{"pattern", "a.x", hostCert(t, ca, 1, []string{"*.x"}, nil), "unknown"},
		{"no names", "a.x", hostCert(t, ca, 1, nil, nil), "unknown"},
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
			if got := outcome(Key(x, c.host, port, nil, c.cert, Rules{})); port == 22 && got != c.want || port == 2222 && c.want == "ok" && got != "ok" {
				t.Errorf("%s, port %d: %s, want %s", c.about, port, got, c.want)
			}
		}
	}
	for pattern, want := range map[string]string{"*.x": "ok", "?.x": "ok", "a.*": "ok", "*.y": "unknown", "": "unknown"} {
		cert := hostCert(t, ca, 1, []string{"other", pattern}, nil)
		if got := outcome(Key(x, "a.x", 22, nil, cert, Rules{Patterns: func() bool { return true }})); got != want {
			t.Errorf("principal %q, where patterns may be: %s, want %s", pattern, got, want)
		}
	}
	// The key inside stands for itself only where keys of its type are asked for.
	certificatesOnly := Rules{Inside: func(keyType string) bool { return keyType != ssh.KeyAlgoED25519 }}
	for _, port := range []int{22, 2222} {
		alone := Key(x, "plain.x", port, nil, hostCert(t, other, 2, nil, nil), certificatesOnly)
		if v, ok := alone.(*Verdict); !ok || v.Kind != Unknown || !v.CA || !strings.Contains(v.Reason, "HostKeyAlgorithms has no ssh-ed25519") {
			t.Errorf("known key inside a bad certificate, which alone was asked for: %v", alone)
		}
	}
	err := Key(x, "a.x", 22, nil, sshtest.Key(1).PublicKey(), Rules{})
	if unknown, ok := errors.AsType[*Verdict](err); !ok || !strings.Contains(unknown.Reason, file+":1 asks for a certificate") {
		t.Errorf("plain key where only an authority is known: %v", err)
	}
	forged := hostCert(t, ca, 1, []string{"a.x"}, nil)
	forged.ValidPrincipals = []string{"b.x"} // after signing
	if got := outcome(Key(x, "b.x", 22, nil, forged, Rules{})); got != "unknown" {
		t.Errorf("forged certificate: %s", got)
	}
}

func TestUnknownIsShort(t *testing.T) {
	v := Verdict{Kind: Unknown, Name: "[127.0.0.1]:2271", Remote: "127.0.0.1:2271", Files: []string{"/home/u/.ssh/known_hosts", "/home/u/.ssh/known_hosts2", "/etc/ssh/ssh_known_hosts"}}
	got := v.What()
	if strings.Count(got, "127.0.0.1") != 1 || !strings.Contains(got, "not in /home/u/.ssh/known_hosts or 2 more") {
		t.Error(got)
	}
	v.Name, v.Remote = "[::1]:2271", "[::1]:2271"
	if got := v.What(); strings.Count(got, "::1") != 1 {
		t.Error(got)
	}
	v.Name, v.Remote = "web1", "192.0.2.1:22"
	if got := v.What(); !strings.Contains(got, "web1 (192.0.2.1:22)") {
		t.Error(got)
	}
}

func TestMessagesSayWhereAndWhatToDo(t *testing.T) {
	file := sshtest.KnownHostsFile(t, "[db1]:2222 "+sshtest.KeyText(1)+"\n@revoked * "+sshtest.KeyText(9)+"\n")
	x := index.Open(file)
	remote := &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 2222}
	for _, c := range []struct {
		key  int
		host string
		want []string
	}{
		{2, "db1", []string{"[db1]:2222 (10.0.0.1:2222)", file + ":1", ssh.FingerprintSHA256(sshtest.Key(1).PublicKey()),
			ssh.FingerprintSHA256(sshtest.Key(2).PublicKey()), "ssh-keygen -R '[db1]:2222' -f " + file}},
		{2, "db2", []string{"[db2]:2222", file, ssh.FingerprintSHA256(sshtest.Key(2).PublicKey()), "accept-new"}},
		{9, "db1", []string{file + ":2", "REVOKED", ssh.FingerprintSHA256(sshtest.Key(9).PublicKey())}},
	} {
		message := Key(x, c.host, 2222, remote, sshtest.Key(c.key).PublicKey(), Rules{}).Error()
		for _, want := range c.want {
			if !strings.Contains(message, want) {
				t.Errorf("message lacks %q: %s", want, message)
			}
		}
	}
	// The command that is recommended does what it says.
	changed, _ := errors.AsType[*Verdict](Key(x, "db1", 2222, nil, sshtest.Key(2).PublicKey(), Rules{}))
	if out, err := exec.Command("sh", "-c", strings.TrimPrefix(changed.Hint(), ChangedHint+": ")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := outcome(Key(x, "db1", 2222, nil, sshtest.Key(2).PublicKey(), Rules{})); got != "unknown" {
		t.Errorf("after ssh-keygen -R: %s", got)
	}
}
