package reach

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/host"
	"sshpace/internal/base/waittest"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/sudo"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/route"
	"sshpace/internal/ssh/sshtest"
)

// withPassword runs true on three addresses of a server with a password.
func withPassword(t *testing.T, s *sshtest.Sshd, password string, settings ...string) []fleet.Result {
	t.Helper()
	known := filepath.Join(t.TempDir(), "known")
	if err := os.WriteFile(known, []byte("* "+sshtest.AuthorizedLine(s.HostKey)), 0o600); err != nil {
		t.Fatal(err)
	}
	return runWithPassword(t, password, conf.Flags{Config: "none", Port: uint16(s.Port), User: s.User,
		Settings: append(settings, "UserKnownHostsFile="+known, "GlobalKnownHostsFile=none", "IdentityAgent=none", "IdentityFile=none"),
	}, "127.0.0.1", "127.0.0.2", "127.0.0.3")
}

// runWithPassword runs true on hosts with a password.
func runWithPassword(t *testing.T, password string, flags conf.Flags, names ...string) []fleet.Result {
	t.Helper()
	executor, err := New(t.Context(), Params{Params: route.Params{Getenv: os.Getenv, Flags: flags}, Engine: Auto, Password: sudo.NewPassword(password)})
	if err != nil {
		t.Fatal(err)
	}
	defer executor.Close()
	sink := &sshtest.Told{}
	var hosts []host.Host
	for _, name := range names {
		hosts = append(hosts, host.Host{Name: name})
	}
	if _, err := fanout.Run(t.Context(), fanout.Params{}, hosts, fleet.Command{Line: "true"}, executor, sink); err != nil {
		t.Fatal(err)
	}
	return sink.Results()
}

// TestPassword: hosts that take a password or ask for it get it once; a wrong one is tried on one
// of them alone, and never where the configuration forbids it.
func TestPassword(t *testing.T) {
	if os.Getuid() != 0 {
		t.Fatal("this test sets a password, as root, that only its own server sees")
	}
	for name, lines := range map[string][]string{
		"password":             {"PasswordAuthentication yes"},
		"nothing to ask by":    {"PasswordAuthentication yes", "KbdInteractiveAuthentication yes"}, // the first method ends at once
		"keyboard-interactive": {"UsePAM yes", "KbdInteractiveAuthentication yes"},
		"old algorithms":       {"PasswordAuthentication yes", "KexAlgorithms diffie-hellman-group-exchange-sha256", "Ciphers aes256-ctr", "MACs hmac-sha2-512"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sshtest.StartSshdWithSudo(t, "hidden word", "", append(lines, "PubkeyAuthentication no", "LogLevel VERBOSE")...)
			for _, r := range withPassword(t, s, "hidden word") {
				if r.Status() != fleet.OK || r.Engine != "native" {
					t.Errorf("%s: %v %s %s", r.Host.Name, r.Class, r.Err, r.Hint)
				}
			}
			before := failures(s)
			for _, r := range withPassword(t, s, "wrong") {
				if r.Class != fleet.AuthFailed || !strings.Contains(r.Hint, "the password was refused") {
					t.Errorf("%s: %v %s: %s", r.Host.Name, r.Class, r.Err, r.Hint)
				}
			}
			waittest.Comes(func() bool { return failures(s) > before }) // sshd writes its log late
			if tries := failures(s) - before; tries != 1 {
				t.Errorf("a wrong password was tried %d times:\n%s", tries, s.Log())
			}
			withPassword(t, s, "wrong", "BatchMode=yes")
			if failures(s) != before+1 {
				t.Errorf("a password was tried under BatchMode, or on a second host:\n%s", s.Log())
			}
		})
	}
}

// TestJumpHostSeesNoPassword: a jump host that takes the password, or asks for it, never gets it;
// the same server as a host that the command runs on does.
func TestJumpHostSeesNoPassword(t *testing.T) {
	for method, lines := range map[string][]string{
		"password":                 {"PasswordAuthentication yes"},
		"keyboard-interactive/pam": {"UsePAM yes", "KbdInteractiveAuthentication yes"},
	} {
		s := sshtest.StartSshdWithSudo(t, "hidden word", "", append(lines, "PubkeyAuthentication no", "LogLevel VERBOSE")...)
		directory := t.TempDir()
		known, config := filepath.Join(directory, "known"), filepath.Join(directory, "config")
		text := fmt.Sprintf("Host behind\n ProxyJump gate\nHost far\n ProxyJump gate,inner\nHost *\n HostName 127.0.0.9\n Port %d\n User %s\n"+
			" UserKnownHostsFile %s\n GlobalKnownHostsFile none\n IdentityAgent none\n IdentityFile none\n", s.Port, s.User, known)
		if err := errors.Join(os.WriteFile(known, []byte("* "+sshtest.AuthorizedLine(s.HostKey)), 0o600), os.WriteFile(config, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, r := range runWithPassword(t, "hidden word", conf.Flags{Config: config}, "behind", "far", "gate") {
			isHost := r.Host.Name == "gate"
			if isHost != (r.Status() == fleet.OK) || !isHost && (r.Class != fleet.AuthFailed || !strings.HasPrefix(r.Err, "jump host ") || strings.Contains(r.Hint, "password")) {
				t.Errorf("%s: %s: %v %s: %s", method, r.Host.Name, r.Class, r.Err, r.Hint)
			}
		}
		given := func() int { return strings.Count(s.Log(), "Accepted "+method+" for") }
		waittest.Comes(func() bool { return given() > 0 }) // sshd writes its log late
		if given() != 1 || failures(s) > 0 {
			t.Errorf("%s: not one host alone has the password:\n%s", method, s.Log())
		}
	}
}

// TestFactors: a key and a password are given in the order in which a server wants them.
func TestFactors(t *testing.T) {
	for _, factors := range []string{"publickey,password", "password,publickey", "publickey,keyboard-interactive:pam"} {
		s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes", "UsePAM yes", "KbdInteractiveAuthentication yes", "AuthenticationMethods "+factors)
		for _, r := range withPassword(t, s, "hidden word", "IdentityFile="+s.Key) {
			if r.Status() != fleet.OK || r.Engine != "native" {
				t.Errorf("%s: %s: %v %s %s", factors, r.Host.Name, r.Class, r.Err, r.Hint)
			}
		}
	}
}

// TestNoKeys: a key is not offered where the configuration allows none.
func TestNoKeys(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes")
	for _, setting := range []string{"PubkeyAuthentication=no", "PreferredAuthentications=password"} {
		for password, want := range map[string]fleet.Class{"hidden word": fleet.NoFailure, "wrong": fleet.AuthFailed} {
			for _, r := range withPassword(t, s, password, setting, "IdentityFile="+s.Key) {
				if r.Class != want || r.Engine != "native" {
					t.Errorf("%s, %q: %s: %v %s: %s", setting, password, r.Host.Name, r.Class, r.Err, r.Hint)
				}
			}
		}
	}
}

// TestPasswordOnlyForNative: a host that only ssh can reach says that ssh gets no password.
func TestPasswordOnlyForNative(t *testing.T) {
	s := sshtest.StartSshdWithSudo(t, "hidden word", "", "PasswordAuthentication yes", "PubkeyAuthentication no", "Ciphers aes128-cbc")
	for _, r := range withPassword(t, s, "hidden word", "Ciphers=+aes128-cbc") {
		if r.Class != fleet.AuthFailed || r.Engine != "openssh" || !strings.Contains(r.Hint, "ssh is never given a password") {
			t.Errorf("%s: %s: %v %s: %s", r.Host.Name, r.Engine, r.Class, r.Err, r.Hint)
		}
	}
}

func failures(s *sshtest.Sshd) int {
	return strings.Count(s.Log(), "\nFailed ") + strings.Count(s.Log(), "error: PAM: Authentication failure")
}

// TestForgedQuestions: what does not ask for the account's password gets none.
func TestForgedQuestions(t *testing.T) {
	for question, echo := range map[string]bool{"Verification code: ": false, "Password: ": true, "One-time password: ": false, "[sudo] token, not password: ": false} {
		s := &sshtest.Server{Ask: func(client ssh.KeyboardInteractiveChallenge) error {
			answers, err := client("", "", []string{question}, []bool{echo})
			if err == nil && fmt.Sprint(answers) != "[]" {
				t.Errorf("%q got %q", question, answers)
			}
			return fmt.Errorf("no")
		}}
		s.Start(t)
		key := s.HostKey.PublicKey()
		for _, r := range withPassword(t, &sshtest.Sshd{Port: s.Port(), User: "u", HostKey: key}, "hidden word") {
			if r.Class != fleet.AuthFailed || !strings.Contains(r.Hint, "gets no password") {
				t.Errorf("%q: %v %s: %s", question, r.Class, r.Err, r.Hint)
			}
		}
	}
}
