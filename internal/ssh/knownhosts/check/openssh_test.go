package check

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// offered returns the host key algorithms that the real ssh offers to a server under the given
// known_hosts text.
func offered(t *testing.T, s *sshtest.KeyServer, known string) []string {
	t.Helper()
	out, _ := s.SSH(t, "127.0.0.1", "UserKnownHostsFile="+known, "LogLevel=DEBUG2")
	_, rest, found := strings.Cut(out, "host key algorithms: ")
	if !found {
		t.Fatalf("ssh names no host key algorithms:\n%s", out)
	}
	list, _, _ := strings.Cut(rest, "\n")
	return withoutSecurityKeys(strings.Split(strings.TrimSpace(list), ","))
}

func withoutSecurityKeys(algs []string) []string {
	return slices.DeleteFunc(algs, func(alg string) bool { return strings.Contains(alg, "sk-") })
}

// TestOrderAgainstSSH compares the order of algorithms with the proposal that the real ssh sends.
func TestOrderAgainstSSH(t *testing.T) {
	s := sshtest.StartKeyServer(t)
	name := knownhosts.HostPort("127.0.0.1", s.Port)
	ed, ec, rsa := sshtest.KeyText(7), knownhosts.MarshalKey(sshtest.ECKey().PublicKey()), knownhosts.MarshalKey(sshtest.RSAKey().PublicKey())
	for _, known := range []string{
		"",
		name + " " + ed,
		name + " " + ec,
		name + " " + rsa,
		name + " " + rsa + "\n" + knownhosts.HashName(name) + " " + ec,
		"@cert-authority * " + ec,
		"@cert-authority * " + ec + "\n" + name + " " + rsa,
		"@revoked * " + ec + "\n" + name + " " + ec,
		"@revoked * " + ed + "\n" + name + " " + ed + "\n" + name + " " + rsa,
	} {
		file := sshtest.KnownHostsFile(t, known+"\n")
		if diff := cmp.Diff(offered(t, s, file), Algorithms(index.Open(file), "127.0.0.1", s.Port, nil)); diff != "" {
			t.Errorf("under\n%s\n(-ssh +ours):\n%s", known, diff)
		}
	}
}

// TestOrderWithoutPort: a key that is known for the name without the port does not change the
// order, as it does not in ssh, though Key accepts it.
func TestOrderWithoutPort(t *testing.T) {
	x := index.Open(sshtest.KnownHostsFile(t, "a "+knownhosts.MarshalKey(sshtest.ECKey().PublicKey())+"\n"))
	if got := Algorithms(x, "a", 2222, []string{"ssh-ed25519", "ecdsa-sha2-nistp256"}); got[0] != "ssh-ed25519" {
		t.Errorf("order %v", got)
	}
}

func TestDefaultAlgorithmsAreThoseOfSSH(t *testing.T) {
	out, err := exec.Command("ssh", "-F", "none", "-G", "localhost").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		if list, found := strings.CutPrefix(strings.TrimSpace(line), "hostkeyalgorithms "); found {
			if diff := cmp.Diff(withoutSecurityKeys(strings.Split(list, ",")), defaultAlgorithms()); diff != "" {
				t.Errorf("(-ssh +ours):\n%s", diff)
			}
			return
		}
	}
	t.Fatal("ssh -G names no hostkeyalgorithms")
}

// TestVerdictAgainstSSH compares Check with what the real ssh does.
func TestVerdictAgainstSSH(t *testing.T) {
	s := sshtest.StartKeyServer(t)
	ed, ec, other := s.KeyText("ed"), s.KeyText("ec"), sshtest.KeyText(7)
	name := knownhosts.HostPort("127.0.0.1", s.Port)
	for _, c := range []struct{ known, want string }{
		{name + " " + ed, "ok"},
		{knownhosts.HashName(name) + " " + ed, "ok"},
		{"127.0.0.1 " + ed, "ok"},
		{"127.0.0.1 " + other, "unknown"},
		{name + " " + other, "changed:1"},
		{name + " " + other + "\n127.0.0.1 " + ed, "changed:1"},
		{name + " " + other + "\n" + name + " " + ed, "ok"},
		{"[127.0.0.*]:* " + ed, "ok"},
		{"* " + ed, "ok"},
		{"*,!127.* " + ed, "ok"}, // "!127.*" does not match "[127.0.0.1]:PORT"
		{"*,!*127.* " + ed, "unknown"},
		{name + " " + ed + "\n@revoked * " + ed, "revoked:2"},
		{name + " " + ed + "\n@revoked * " + ed[:40] + "\f" + ed[40:50] + "\v" + ed[50:] + "\v", "revoked:2"}, // white space of C
		{"@revoked x " + ed + "\n" + name + " " + ed, "ok"},
		{"@cert-authority * " + ed, "unknown"},
		{name + " " + ec + "\n" + name + " " + ed, "ok"},
		{"", "unknown"},
	} {
		file := sshtest.KnownHostsFile(t, c.known+"\n")
		key := sshtest.ParseKey(t, ed)
		got := outcome(Key(index.Open(file), "127.0.0.1", s.Port, nil, key, Rules{}))
		out, code := s.SSH(t, "127.0.0.1", "UserKnownHostsFile="+file, "HostKeyAlgorithms=ssh-ed25519")
		if got != c.want || (code == 0) != (got == "ok") {
			t.Errorf("under\n%s\nCheck says %s, want %s; ssh exits with %d:\n%s", c.known, got, c.want, code, out)
		}
		sshSays := map[string]string{"ok": "", "unknown": "No ED25519 host key is known", "changed": "REMOTE HOST IDENTIFICATION HAS CHANGED", "revoked": "REVOKED HOST KEY DETECTED"}
		kind, _, _ := strings.Cut(c.want, ":")
		if !strings.Contains(out, sshSays[kind]) {
			t.Errorf("under\n%s\nwe say %s, ssh says\n%s", c.known, got, out)
		}
	}
}

// TestUndecodedIsNotUnknown: a line for the host whose key cannot be decoded is another key of it,
// whatever ssh of this release makes of it, unless one that can be is the server's.
func TestUndecodedIsNotUnknown(t *testing.T) {
	const newer = "ssh-mldsa44-ed25519@openssh.com AAAAH3NzaC1tbGRzYTQ0LWVkMjU1MTlAb3BlbnNzaC5jb20AAAAEAAAAAA=="
	key := sshtest.Key(1).PublicKey()
	for known, want := range map[string]string{
		"[a]:2222 " + newer:                           "changed:1",
		knownhosts.HashName("[a]:2222") + " " + newer: "changed:1",
		"*,!b " + newer:                               "changed:1",
		"# \n[a]:2222 ssh-ed25519 AAAA":               "changed:2",
		"[a]:2222 1024 35 12345678901":                "changed:1",
		"a " + newer:                                  "unknown",
		"[b]:2222 " + newer:                           "unknown",
		"[a]:2222 " + newer + "\n[a]:2222 " + knownhosts.MarshalKey(key): "ok",
		"[a]:2222 " + newer + "\n[a]:2222 " + sshtest.KeyText(2):         "changed:2",
		"@cert-authority * " + newer:                                     "unknown",
		"@revoked * " + newer:                                            "unknown",
	} {
		err := Key(index.Open(sshtest.KnownHostsFile(t, known+"\n")), "a", 2222, nil, key, Rules{})
		if got := outcome(err); got != want {
			t.Errorf("under\n%s\nwe say %s, want %s", known, got, want)
		}
		if v, ok := err.(*Verdict); ok && v.Kind == Unknown && v.CA != strings.HasPrefix(known, "@cert-authority") {
			t.Errorf("under\n%s\nauthority: %v", known, v.CA)
		}
	}
}

// TestAliasAgainstSSH: HostKeyAlias replaces name and port.
func TestAliasAgainstSSH(t *testing.T) {
	s := sshtest.StartKeyServer(t)
	file := sshtest.KnownHostsFile(t, "web "+s.KeyText("ed")+"\n")
	if out, code := s.SSH(t, "127.0.0.1", "UserKnownHostsFile="+file, "HostKeyAlias=Web"); code != 0 {
		t.Errorf("ssh exits with %d: %s", code, out)
	}
	key := sshtest.ParseKey(t, s.KeyText("ed"))
	if err := Key(index.Open(file), "Web", 0, nil, key, Rules{}); err != nil {
		t.Error(err)
	}
	if got := Algorithms(index.Open(file), "Web", 0, []string{"ecdsa-sha2-nistp256", "ssh-ed25519"}); got[0] != "ssh-ed25519" {
		t.Errorf("algorithms %v", got)
	}
}
