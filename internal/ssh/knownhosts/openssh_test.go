package knownhosts

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// offered returns the host key algorithms that the real ssh offers to a server
// under the given known_hosts text.
func offered(t *testing.T, s sshd, known string) []string {
	t.Helper()
	out, _ := s.ssh(t, "127.0.0.1", "UserKnownHostsFile="+known, "LogLevel=DEBUG2")
	_, rest, found := strings.Cut(out, "host key algorithms: ")
	if !found {
		t.Fatalf("ssh names no host key algorithms:\n%s", out)
	}
	list, _, _ := strings.Cut(rest, "\n")
	return withoutSecurityKeys(strings.Split(strings.TrimSpace(list), ","))
}

func withoutSecurityKeys(algs []string) []string {
	return slices.DeleteFunc(algs, func(alg string) bool { return strings.HasPrefix(alg, "sk-") })
}

// TestOrderAgainstSSH compares the order of algorithms with the proposal that
// the real ssh sends.
func TestOrderAgainstSSH(t *testing.T) {
	s := startSSHD(t)
	name := HostPort("127.0.0.1", s.port)
	ed, ec, rsa := edLine(7), marshalKey(ecKey().PublicKey()), marshalKey(rsaKey().PublicKey())
	for _, known := range []string{
		"",
		name + " " + ed,
		name + " " + ec,
		name + " " + rsa,
		name + " " + rsa + "\n" + HashName(name) + " " + ec,
		"@cert-authority * " + ec,
		"@cert-authority * " + ec + "\n" + name + " " + rsa,
		"@revoked * " + ec + "\n" + name + " " + ec,
		"@revoked * " + ed + "\n" + name + " " + ed + "\n" + name + " " + rsa,
	} {
		file := writeFile(t, known+"\n")
		if diff := cmp.Diff(offered(t, s, file), Open(file).OrderHostKeyAlgorithms("127.0.0.1", s.port, nil)); diff != "" {
			t.Errorf("under\n%s\n(-ssh +ours):\n%s", known, diff)
		}
	}
}

// TestOrderWithoutPort: unlike ssh, which then offers its defaults, our order
// counts a key that is known for the name without the port, since Check does.
func TestOrderWithoutPort(t *testing.T) {
	x := Open(writeFile(t, "a "+marshalKey(ecKey().PublicKey())+"\n"))
	if got := x.OrderHostKeyAlgorithms("a", 2222, []string{"ssh-ed25519", "ecdsa-sha2-nistp256"}); got[0] != "ecdsa-sha2-nistp256" {
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
			if diff := cmp.Diff(withoutSecurityKeys(strings.Split(list, ",")), DefaultHostKeyAlgorithms()); diff != "" {
				t.Errorf("(-ssh +ours):\n%s", diff)
			}
			return
		}
	}
	t.Fatal("ssh -G names no hostkeyalgorithms")
}

// TestVerdictAgainstSSH compares Check with what the real ssh does.
func TestVerdictAgainstSSH(t *testing.T) {
	s := startSSHD(t)
	ed, ec, other := s.hostKey(t, "ed"), s.hostKey(t, "ec"), edLine(7)
	name := HostPort("127.0.0.1", s.port)
	for _, c := range []struct{ known, want string }{
		{name + " " + ed, "ok"},
		{HashName(name) + " " + ed, "ok"},
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
		file := writeFile(t, c.known+"\n")
		key, err := parsedKey(ed)
		if err != nil {
			t.Fatal(err)
		}
		got := outcome(Open(file).Check("127.0.0.1", s.port, nil, key))
		out, code := s.ssh(t, "127.0.0.1", "UserKnownHostsFile="+file, "HostKeyAlgorithms=ssh-ed25519")
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

// TestAliasAgainstSSH: HostKeyAlias replaces name and port.
func TestAliasAgainstSSH(t *testing.T) {
	s := startSSHD(t)
	file := writeFile(t, "web "+s.hostKey(t, "ed")+"\n")
	if out, code := s.ssh(t, "127.0.0.1", "UserKnownHostsFile="+file, "HostKeyAlias=Web"); code != 0 {
		t.Errorf("ssh exits with %d: %s", code, out)
	}
	key, err := parsedKey(s.hostKey(t, "ed"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Open(file).Check("Web", 0, nil, key); err != nil {
		t.Error(err)
	}
	if got := Open(file).HostKeyAlgorithms("Web", 0, nil); fmt.Sprint(got) != "[ssh-ed25519]" {
		t.Errorf("algorithms %v", got)
	}
}
