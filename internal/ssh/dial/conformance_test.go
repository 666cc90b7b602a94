package dial_test

import (
	"testing"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/fleettest"
	"sshpace/internal/ssh/dial"
)

// TestConformance: the engine does what every executor has to do, also over the
// handshake of x/crypto.
func TestConformance(t *testing.T) {
	for name, exchanges := range map[string][]string{"own": nil, "classic": {"ecdh-sha2-nistp256", "curve25519-sha256"}} {
		t.Run(name, func(t *testing.T) {
			fleettest.Test(t, fleettest.Engine{Reach: func(t testing.TB, s fleettest.Servers) fleet.Executor {
				e := dial.New(byPort(dial.Target{
					User: s.User, HostKeys: fixedKey{s.HostKey}, KeyExchanges: exchanges, ConnectTimeout: s.Timeout(),
					Identity: dial.Identity{Files: []string{s.Key}},
				}), dial.Options{})
				t.Cleanup(func() { e.Close() })
				return e
			}})
		})
	}
}
