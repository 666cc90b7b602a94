package tidy

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"
)

// pinServer pins web at 127.0.0.1 and returns a config file that names it.
func pinServer(t *testing.T, s *sshtest.KeyServer, x *index.Index, dir, address string) (PinResult, string) {
	t.Helper()
	result, err := Pin(x, PinOptions{Name: "Web", Address: address, Port: s.Port, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "conf", "pins")
	if err := WritePinConfig(config, result); err != nil {
		t.Fatal(err)
	}
	return result, config
}

// TestPinWithSSH: the real ssh finds a pinned server wherever it is, and refuses another server at
// the same address.
func TestPinWithSSH(t *testing.T) {
	s := sshtest.StartKeyServer(t)
	dir := filepath.Join(t.TempDir(), "pins")
	x := index.Open(sshtest.KnownHostsFile(t, knownhosts.HostPort("127.0.0.1", s.Port)+" "+s.KeyText("ed")+"\n"))
	first, config := pinServer(t, s, x, dir, "127.0.0.1")
	if len(first.Keys) != 1 || !strings.HasPrefix(first.Keys[0], "ssh-ed25519 SHA256:") {
		t.Errorf("pinned keys %v", first.Keys)
	}
	if out, code := s.SSHWith(t, config, "Web"); code != 0 {
		t.Fatalf("ssh exits with %d: %s", code, out)
	}
	moved, config := pinServer(t, s, index.Open(), dir, "localhost") // the key is in the file by now
	if fmt.Sprint(moved.Keys[0]) != first.Keys[0] || moved.File != first.File {
		t.Errorf("after the move: %+v", moved)
	}
	if out, code := s.SSHWith(t, config, "Web"); code != 0 {
		t.Fatalf("after the move: ssh exits with %d: %s", code, out)
	}
	if err := os.WriteFile(first.File, []byte("web "+sshtest.KeyText(7)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := s.SSHWith(t, config, "Web"); code != 255 || !strings.Contains(out, "IDENTIFICATION HAS CHANGED") {
		t.Errorf("another server: ssh exits with %d: %s", code, out)
	}
}

func TestPinLooksForTheKey(t *testing.T) {
	x := index.Open(sshtest.KnownHostsFile(t, strings.Join([]string{
		"[10.0.0.1]:2222 " + sshtest.KeyText(1), "old.example.com " + sshtest.KeyText(2), "web2 " + sshtest.KeyText(3), "@revoked web2 " + sshtest.KeyText(3), "web3 " + sshtest.KeyText(4), "@cert-authority web3 " + sshtest.KeyText(5),
	}, "\n")))
	for _, c := range []struct {
		o    PinOptions
		want []int
	}{
		{PinOptions{Name: "web", Address: "10.0.0.1", Port: 2222}, []int{1}},
		{PinOptions{Name: "web", Address: "10.0.0.1"}, nil},
		{PinOptions{Name: "web", Address: "10.0.0.1", Port: 2222, From: "OLD.example.com"}, []int{2}},
		{PinOptions{Name: "web", Address: "10.0.0.9", From: "[10.0.0.1]:2222"}, []int{1}},
		{PinOptions{Name: "web2", Address: "10.0.0.9"}, nil},
		{PinOptions{Name: "web3", Address: "10.0.0.9"}, []int{4}},
	} {
		c.o.Dir = filepath.Join(t.TempDir(), "pins")
		r, err := Pin(x, c.o)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{}
		for _, n := range c.want {
			want = append(want, knownhosts.Fingerprint(sshtest.Key(n).PublicKey()))
		}
		if fmt.Sprint(r.Keys) != fmt.Sprint(want) {
			t.Errorf("%+v: keys %v, want %v", c.o, r.Keys, want)
		}
		strict := map[bool]string{true: "StrictHostKeyChecking yes", false: "StrictHostKeyChecking ask"}[len(want) > 0]
		if !strings.Contains(r.Config, strict) {
			t.Errorf("%+v: config lacks %q:\n%s", c.o, strict, r.Config)
		}
		if _, err := os.Stat(r.File); (err == nil) != (len(want) > 0) {
			t.Errorf("%+v: file: %v", c.o, err)
		}
	}
}

func TestPinRefuses(t *testing.T) {
	for _, o := range []PinOptions{
		{Name: "../web", Address: "10.0.0.1"}, {Name: "web", Address: ""}, {Name: "web", Address: "10.0.0.1\nProxyCommand x"},
		{Name: "web", Address: "-oProxyCommand=x"}, {Name: "a b", Address: "10.0.0.1"}, {Name: "*", Address: "10.0.0.1"}, {Name: "", Address: "10.0.0.1"},
	} {
		o.Dir = t.TempDir()
		if r, err := Pin(index.Open(), o); err == nil {
			t.Errorf("%+v was pinned: %+v", o, r)
		}
	}
}

func TestPinConfigHoldsManyServers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "conf", "pins")
	pin := func(name, address string) {
		t.Helper()
		r, err := Pin(index.Open(), PinOptions{Name: name, Address: address, Dir: filepath.Join(filepath.Dir(file), "keys")})
		if err != nil {
			t.Fatal(err)
		}
		if err := WritePinConfig(file, r); err != nil {
			t.Fatal(err)
		}
	}
	pin("web", "10.0.0.1")
	pin("db", "10.0.0.2")
	pin("web", "10.0.0.3")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for want, count := range map[string]int{"Host web\n": 1, "Host db\n": 1, "HostName 10.0.0.1\n": 0, "HostName 10.0.0.2\n": 1, "HostName 10.0.0.3\n": 1, "# Pinned": 1} {
		if got := strings.Count(string(text), want); got != count {
			t.Errorf("%q stands %d times in\n%s", want, got, text)
		}
	}
	if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	foreign := sshtest.KnownHostsFile(t, "Host *\n  User me\n")
	if err := WritePinConfig(foreign, PinResult{Name: "x", Config: "Host x\n"}); err == nil {
		t.Error("a file of the user's was replaced")
	}
	if text, _ := os.ReadFile(foreign); string(text) != "Host *\n  User me\n" {
		t.Errorf("the user's file holds %q", text)
	}
}
