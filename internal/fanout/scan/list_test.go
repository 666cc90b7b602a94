package scan

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/fault"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshtest"
)

const printA, printB = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "SHA256:BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"

func TestReadList(t *testing.T) {
	l := list(t, "# keys of new hosts", "", "web1 "+printA, "Web2,[db1]:2222 ssh-ed25519 "+printA+" rack 7", "256 "+printB+" root@web3 (ED25519)\r",
		"web4: 3072 "+printB+" no comment (RSA)", "web4 256 "+printA+" root@localhost (ED25519)")
	for name, want := range map[string]string{"web1": printA + " ", "WEB2": printA + " ED25519", "[db1]:2222": printA + " ED25519", "web3": printB + " ED25519", "web4": printB + " RSA"} {
		if lines := l.of("unknown", name); len(lines) == 0 || lines[0].fingerprint+" "+lines[0].kind != want {
			t.Errorf("%s: %+v", name, lines)
		}
	}
	for text, want := range map[string]string{
		"":                               "it has no line",
		"web1":                           "line 1 has no SHA256 fingerprint",
		"web1 SHA256:short":              "line 1 has no SHA256 fingerprint",
		"256 MD5:00:11 root@web1 (RSA)":  "line 1 has no SHA256 fingerprint",
		printA:                           "line 1 does not begin with one name of a host",
		"my web 1 " + printA:             "line 1 does not begin with one name of a host",
		"web 1 " + printA + " " + printB: "line 1 has two fingerprints",
		"256 " + printA + " no comment (ED25519)": `line 1 names no host: its comment is "no comment"`,
		"web* " + printA:                        `line 1 is wrong: host name "web*" cannot be a plain name in known_hosts`,
		"|1|abc|def " + printA:                  `line 1 is wrong: host name "|1|abc|def" cannot be a plain name in known_hosts`,
		"web1 " + printA + "\n\nWEB1 " + printA: "line 3 repeats line 1",
		"web1 ssh-rsa " + printA + "\n3072 " + printB + " root@web1 (RSA)": "line 2 contradicts line 1: two RSA keys of web1",
		"a\nb\nc\nd\ne": "line 3 has no SHA256 fingerprint; 2 more lines are wrong",
	} {
		if _, err := ReadList("list", []byte(text)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	if _, err := Open(t.Context(), filepath.Join(t.TempDir(), "none"), nil); fault.HintOf(err) != listHint {
		t.Errorf("%v", err)
	}
}

// TestSigned: a signature counts for the text, the signer and the purpose that it was made for.
func TestSigned(t *testing.T) {
	dir := t.TempDir()
	key, public := sshtest.WriteKey(t, dir, "key", "")
	signers, name := filepath.Join(dir, "signers"), filepath.Join(dir, "list")
	text := "web1 " + printA + "\n"
	for file, text := range map[string]string{signers: "ops@example.com " + sshtest.AuthorizedLine(public), name: text} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for namespace, valid := range map[string]bool{"sshpace-known-hosts": true, "file": true, "git": false} {
		if out, err := sshtest.Keygen("-Y", "sign", "-n", namespace, "-f", key, name); err != nil {
			t.Fatal(out)
		}
		s := &Signature{Signature: openssh.Signature{File: name + ".sig", AllowedSigners: signers}, Principal: "ops@example.com"}
		l, err := Open(t.Context(), name, s)
		if (err == nil) != valid || valid && len(l.of("web1")) != 1 {
			t.Errorf("%s: %v", namespace, err)
		}
		if err := s.Verify(t.Context(), name, []byte(text+"web2 "+printB+"\n")); err == nil {
			t.Errorf("%s: a changed text counts", namespace)
		}
		s.Principal = "eve@example.com"
		if err := s.Verify(t.Context(), name, []byte(text)); err == nil || !strings.Contains(err.Error(), "is not signed by eve@example.com: ") {
			t.Errorf("%s: another signer: %v", namespace, err)
		}
		os.Remove(name + ".sig")
	}
}
