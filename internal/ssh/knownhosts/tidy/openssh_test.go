package tidy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/base/host"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
	"sshpace/internal/ssh/sshtest"

	"sshpace/internal/ssh/conf"
)

// splitFor splits a file that knows the server under its address and as web, among other hosts, and
// returns the directory and an ssh_config that uses it.
func splitFor(t *testing.T, s *sshtest.KeyServer, name string) (dir, config string) {
	t.Helper()
	file := sshtest.KnownHostsFile(t, sshtest.FleetFile(20, false)+name+" "+s.KeyText("ed")+"\n*.example.org "+sshtest.KeyText(3)+"\nweb "+s.KeyText("ed")+"\n")
	dir = filepath.Join(t.TempDir(), "per host 100%") // a name that needs quoting in ssh_config
	if _, err := Split(t.Context(), index.Open(file), dir, SplitOptions{Hosts: append(named("web", sshtest.FleetHost(1)), host.Host{Name: "127.0.0.1", Port: uint16(s.Port)})}); err != nil {
		t.Fatal(err)
	}
	text, err := SplitConfig(dir, map[string]string{"nickname": "web"})
	if err != nil {
		t.Fatal(err)
	}
	config = filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, config
}

// TestSSHWithSplitFiles: the real ssh accepts the server by the split files and the printed
// configuration, learns its other key, and refuses a wrong one.
func TestSSHWithSplitFiles(t *testing.T) {
	s := sshtest.StartKeyServer(t)
	for about, name := range map[string]string{
		"plain":  knownhosts.HostPort("127.0.0.1", s.Port),
		"hashed": knownhosts.HashName(knownhosts.HostPort("127.0.0.1", s.Port)),
	} {
		dir, config := splitFor(t, s, name)
		own := filepath.Join(dir, "127.0.0.1")
		for run := range 2 { // the second run reads what UpdateHostKeys wrote in the first
			if out, code := s.SSHWith(t, config, "127.0.0.1"); code != 0 {
				t.Fatalf("%s, run %d: ssh exits with %d: %s", about, run, code, out)
			}
		}
		text, err := os.ReadFile(own)
		if err != nil {
			t.Fatal(err)
		}
		for _, kind := range []string{"ed", "ec"} {
			if want := knownhosts.HostPort("127.0.0.1", s.Port) + " " + s.KeyText(kind) + "\n"; !strings.Contains(string(text), want) {
				t.Errorf("%s: after UpdateHostKeys the file lacks the %s key: %q", about, kind, text)
			}
		}
		if err := os.WriteFile(own, []byte(knownhosts.HostPort("127.0.0.1", s.Port)+" "+sshtest.KeyText(7)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, code := s.SSHWith(t, config, "127.0.0.1"); code != 255 || !strings.Contains(out, "IDENTIFICATION HAS CHANGED") {
			t.Errorf("%s: a wrong key: ssh exits with %d: %s", about, code, out)
		}
		if err := os.Remove(own); err != nil {
			t.Fatal(err)
		}
		if out, code := s.SSHWith(t, config, "127.0.0.1"); code != 255 || !strings.Contains(out, "host key is known") {
			t.Errorf("%s: no key: ssh exits with %d: %s", about, code, out)
		}
	}
}

// TestSSHAliasWithSplitFiles: a host with a HostKeyAlias uses the file of the alias by the block
// that is printed for it.
func TestSSHAliasWithSplitFiles(t *testing.T) {
	s := sshtest.StartKeyServer(t)
	_, config := splitFor(t, s, "unused")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "Host nickname\n HostName 127.0.0.1\n HostKeyAlias Web\n"...)
	if err := os.WriteFile(config, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := s.SSHWith(t, config, "nickname"); code != 0 {
		t.Errorf("ssh exits with %d: %s", code, out)
	}
	if out, code := s.SSHWith(t, config, "127.0.0.1"); code != 255 {
		t.Errorf("without the alias: ssh exits with %d: %s", code, out)
	}
}

// TestSameFileTwiceLosesItsKeys records why SplitConfig does not name both %h and %k: ssh empties a
// file that is listed twice.
func TestSameFileTwiceLosesItsKeys(t *testing.T) {
	s := sshtest.StartKeyServer(t)
	dir, _ := splitFor(t, s, knownhosts.HostPort("127.0.0.1", s.Port))
	path, err := ConfigPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	both := "UserKnownHostsFile " + conf.Quote(path+"/%h") + " " + conf.Quote(path+"/%k") + "\nUpdateHostKeys yes\n"
	if err := os.WriteFile(config, []byte(both), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := s.SSHWith(t, config, "127.0.0.1"); code != 0 {
		t.Fatalf("ssh exits with %d: %s", code, out)
	}
	if text, _ := os.ReadFile(filepath.Join(dir, "127.0.0.1")); len(text) != 0 {
		t.Errorf("this ssh keeps the keys (%q): SplitConfig could name both", text)
	}
}

func TestSplitConfigRefusesWhatSSHCannotName(t *testing.T) {
	for typed, alias := range map[string]string{"a b": "x", "x": "../y", "*": "x", "x\nHost *": "y"} {
		if text, err := SplitConfig("d", map[string]string{typed: alias}); err == nil {
			t.Errorf("%q with alias %q: %s", typed, alias, text)
		}
	}
	for _, dir := range []string{`a"b`, "a\nb", "a${HOME}b", `a\b`} {
		if text, err := SplitConfig(dir, nil); err == nil {
			t.Errorf("%q: %s", dir, text)
		}
	}
}
