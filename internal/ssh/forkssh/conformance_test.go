package forkssh_test

import (
	"os"
	"path/filepath"
	"testing"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/fleettest"
	"sshpace/internal/ssh/conf"
	"sshpace/internal/ssh/forkssh"
	"sshpace/internal/ssh/sshtest"
)

// TestConformance: the engine does what every executor has to do.
func TestConformance(t *testing.T) {
	fleettest.Test(t, fleettest.Engine{NoSignals: true, NoExec: true, Reach: func(t testing.TB, s fleettest.Servers) fleet.Executor {
		file := filepath.Join(t.TempDir(), "known_hosts")
		if err := os.WriteFile(file, []byte("* "+sshtest.AuthorizedLine(s.HostKey)), 0o600); err != nil {
			t.Fatal(err)
		}
		return forkssh.New(forkssh.Options{ConnectTimeout: s.Timeout(), Flags: conf.Flags{
			Config: "none", Identities: []string{s.Key}, User: s.User, Settings: []string{"IdentityAgent=none", "UserKnownHostsFile=" + file, "GlobalKnownHostsFile=none"},
		}})
	}})
}
