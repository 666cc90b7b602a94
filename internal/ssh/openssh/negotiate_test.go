package openssh_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"sshpace/internal/base/waittest"
	"sshpace/internal/ssh/channel"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshtest"
)

// What is agreed on is found out by a login, which no server punishes; and why nothing can be
// agreed on.
func TestNegotiateLogsIn(t *testing.T) {
	server := sshtest.StartSshd(t, "LogLevel VERBOSE", "Ciphers aes256-ctr", "MACs hmac-sha1")
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("NoHostAuthenticationForLocalhost yes\nPort %d\nUser %s\nIdentityFile %s\nIdentityAgent none\n", server.Port, server.User, server.Key)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	negotiate := func(settings ...string) (openssh.Negotiation, error) {
		d := openssh.Destination{Host: "127.0.0.1", Flags: conf.Flags{Config: config, Settings: settings}}
		return client.Negotiate(t.Context(), d, filepath.Join(t.TempDir(), "log"), 10*time.Second)
	}
	n, err := negotiate()
	if err != nil || n.Got.Cipher != "aes256-ctr" || n.Got.MAC != "hmac-sha1" || n.Got.Kex == "" || !n.LoggedIn {
		t.Errorf("%+v, %v", n, err)
	}
	accepted := waittest.Comes(func() bool { return strings.Contains(server.Log(), "Accepted publickey") }) // sshd writes its log late
	if log := server.Log(); !accepted || regexp.MustCompile(`(?i)(closed|reset|disconnect).*preauth`).MatchString(log) {
		t.Errorf("a connection without a login:\n%s", log)
	}
	if _, err := negotiate("MACs=hmac-sha2-256"); err == nil || !strings.Contains(err.Error(), "no matching MAC") {
		t.Errorf("without a MAC in common: %v", err)
	}
	if _, err := negotiate("PubkeyAuthentication=no"); err == nil || !strings.Contains(err.Error(), "Permission denied") {
		t.Errorf("without a key: %v", err)
	}
}

// A host that has ssh write without end ends the login, and fills no disk.
func TestNegotiateIsNotFlooded(t *testing.T) {
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	const debug = 4 // SSH_MSG_DEBUG (RFC 4253 section 11.3)
	message := append(channel.AppendText([]byte{debug, 0}, strings.Repeat("x", 900)), 0, 0, 0, 0)
	host := &sshtest.Hostile{HostKey: sshtest.NewKey(t), At: sshtest.AtKeys, Do: func(p *sshtest.Peer) {
		for p.Send(message) == nil {
		}
	}}
	dir := t.TempDir()
	d := openssh.Destination{Host: "127.0.0.1", Flags: conf.Flags{Config: "none", Port: uint16(host.Start(t)), Settings: []string{"NoHostAuthenticationForLocalhost=yes"}}}
	if _, err := client.Negotiate(t.Context(), d, filepath.Join(dir, "log"), time.Hour); err == nil || !strings.Contains(err.Error(), "more than 1 MiB of debug messages") {
		t.Errorf("got %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v is left", left)
	}
}
