package openssh_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/sshtest"
)

// What would be agreed on is found out without a login, also where the user's
// own ssh would log in; and why nothing can be agreed on.
func TestNegotiateDoesNotLogIn(t *testing.T) {
	server := sshtest.StartSshd(t, "LogLevel VERBOSE", "Ciphers aes256-ctr", "MACs hmac-sha1")
	client, err := openssh.FindClient(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("NoHostAuthenticationForLocalhost yes\nPort %d\n", server.Port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	negotiate := func(options ...string) (openssh.Negotiation, error) {
		d := openssh.Destination{Host: "127.0.0.1", Options: append([]string{"-F", config}, options...)}
		return client.Negotiate(t.Context(), d, filepath.Join(t.TempDir(), "log"), 10*time.Second)
	}
	n, err := negotiate()
	if err != nil || n.Got.Cipher != "aes256-ctr" || n.Got.MAC != "hmac-sha1" || n.Got.Kex == "" || n.LoggedIn {
		t.Errorf("%+v, %v", n, err)
	}
	if _, err := negotiate("-o", "MACs=hmac-sha2-256"); err == nil || !strings.Contains(err.Error(), "no matching MAC") {
		t.Errorf("without a MAC in common: %v", err)
	}
	if log := server.Log(); strings.Contains(log, "Accepted") || strings.Contains(log, "Failed") || !strings.Contains(log, "preauth") {
		t.Errorf("somebody tried to log in:\n%s", log)
	}
}
