package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sshpace/internal/ssh/route"
)

// TestHostsFileTakesBothBrackets: a port as in known_hosts, a range as in a set.
func TestHostsFileTakesBothBrackets(t *testing.T) {
	list := filepath.Join(t.TempDir(), "hosts")
	text := "[git.example.com]:7999\nroot@[db1]:2222 # comment\n  [10.0.0.1]:22\nweb[1-2]:2200\n[::1]:2222\nplain\n"
	if err := os.WriteFile(list, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var flags hostFlags
	flags.Lists, flags.connection.Config = []string{list}, "none"
	hosts, err := flags.lookedUp(t.Context(), System{Getenv: os.Getenv, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	want := "[git.example.com]:7999 [db1]:2222 10.0.0.1 [web1]:2200 [web2]:2200 [::1]:2222 plain"
	if got := strings.Join(route.KnownNames(hosts), " "); got != want {
		t.Errorf("hosts %s, want %s", got, want)
	}
}
