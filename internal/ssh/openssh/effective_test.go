package openssh

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/waittest"
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

// TestAskEnds: a configuration that waits for something holds nobody up, and what it has
// started is gone with the question.
func TestAskEnds(t *testing.T) {
	dir := t.TempDir()
	pipe, slow, pid := filepath.Join(dir, "pipe"), filepath.Join(dir, "slow"), filepath.Join(dir, "pid")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	config := "Match exec \"echo $$ > " + pid + ".new; mv " + pid + ".new " + pid + "; sleep 600\"\nUser x\n"
	if err := os.WriteFile(slow, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ssh, err := FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	for file, begun := range map[string]string{pipe: pipe, slow: pid} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			waittest.Comes(func() bool { _, err := os.Stat(begun); return err == nil })
			time.Sleep(300 * time.Millisecond) // then it waits
			cancel()
		}()
		began := time.Now()
		_, err := ssh.Effective(ctx, Destination{Host: "h", Flags: conf.Flags{Config: file}})
		if took := time.Since(began); !errors.Is(err, context.Canceled) || took > 5*time.Minute {
			t.Errorf("%s: %v after %v", file, err, took)
		}
	}
	text, err := os.ReadFile(pid)
	if err != nil {
		t.Fatalf("the Match exec did not start: %v", err)
	}
	number, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	waittest.Gone(t, number)
}
