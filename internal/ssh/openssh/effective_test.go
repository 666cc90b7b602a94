package openssh

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/ssh/conf"
)

func TestEffectiveClient(t *testing.T) {
	ssh, err := FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	text := "Host nas\n  Ciphers aes256-ctr,aes128-ctr\nHost *\n  MACs hmac-sha2-256\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ssh.Effective(t.Context(), Destination{Host: "nas", Flags: conf.Flags{Config: config}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"aes256-ctr", "aes128-ctr"}, got.Ciphers); diff != "" || len(got.MACs) != 1 || len(got.Kex) < 2 {
		t.Errorf("effective: %+v\n%s", got, diff)
	}
	if err := os.WriteFile(config, []byte("Ciphers rot13\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ssh.Effective(t.Context(), Destination{Host: "nas", Flags: conf.Flags{Config: config}}); err == nil || !strings.Contains(err.Error(), "rot13") {
		t.Errorf("a bad cipher: %v", err)
	}
}

func TestCopyOptions(t *testing.T) {
	p := Program{Path: "/usr/bin/ssh", lacks: []string{"WarnWeakCrypto"}}
	d := Destination{Host: "h", Flags: conf.Flags{Config: "f", Port: 22, User: "me", IPv4: true}}
	got := strings.Join(p.CopyOptions(d, alg.Suite{Cipher: "c"}, time.Second), " ")
	if !strings.HasSuffix(got, "-o ConnectTimeout=1 -o Ciphers=c -P 22 -o User=me -F f -4") || strings.Contains(got, "Warn") || strings.Contains(got, " -l ") {
		t.Errorf("options: %s", got)
	}
}

// Both signals of strict key exchange must come from their own side.
func TestStrict(t *testing.T) {
	for text, want := range map[string]bool{
		"debug2: local client KEXINIT proposal\ndebug2: KEX algorithms: a,kex-strict-c-v00@openssh.com\ndebug2: peer server KEXINIT proposal\ndebug2: KEX algorithms: a,kex-strict-s-v00@openssh.com\n": true,
		"debug2: local client KEXINIT proposal\ndebug2: KEX algorithms: a,kex-strict-c-v00@openssh.com\ndebug2: peer server KEXINIT proposal\ndebug2: KEX algorithms: a\n":                              false,
		"debug2: local client KEXINIT proposal\ndebug2: KEX algorithms: a\ndebug2: peer server KEXINIT proposal\ndebug2: KEX algorithms: a,kex-strict-s-v00@openssh.com,kex-strict-c-v00@openssh.com\n": false,
		"": false,
	} {
		if got := ParseVerbose(text).Strict; got != want {
			t.Errorf("%q: strict %v, want %v", text, got, want)
		}
	}
}

func TestParseEndpoint(t *testing.T) {
	for text, want := range map[string]Endpoint{
		"user me\nhostname nas.example\nport 22\n":                     {"nas.example", "22", "nas.example"},
		"hostname 10.0.0.1\nport 2222\n":                               {"10.0.0.1", "2222", "[10.0.0.1]:2222"},
		"host a\nhostname 10.0.0.1\nport 2222\nhostkeyalias cluster\n": {"10.0.0.1", "2222", "cluster"},
	} {
		if got := parseEndpoint(text); got != want {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestKeyFileOfAChangedKey(t *testing.T) {
	if got := ParseVerbose("Offending ED25519 key in /home/a b/.ssh/known_hosts:3\n").KeyFile; got != "/home/a b/.ssh/known_hosts" {
		t.Errorf("key file %q", got)
	}
}
