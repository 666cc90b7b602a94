package dial_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
	"sshpace/internal/sys/relay"
)

// TestFallback: servers without the algorithms of the fast transport are logged
// in to by x/crypto's, on a second connection; that is remembered for the run, and
// no command runs twice.
func TestFallback(t *testing.T) {
	const n = 3
	for what, option := range map[string]string{
		"kex":    "KexAlgorithms diffie-hellman-group14-sha256",
		"cipher": "Ciphers aes128-ctr",
	} {
		t.Run(what, func(t *testing.T) {
			s := sshtest.StartSshd(t, option)
			var connections atomic.Int64
			r := through(t, s.Port, relay.Options{Watch: func(seen relay.Seen) { connections.Store(max(connections.Load(), int64(seen.Conn))) }})
			tg := sshdTarget(s)
			tg.Port, tg.KeyExchanges = r.Port(), nil
			log := filepath.Join(t.TempDir(), "log")
			for _, res := range run(t, fleet.Params{Fanout: 1}, tg, slices.Repeat(hosts(1), n), fleet.Command{Line: "echo ran >>" + log}, &collect{}) {
				if res.Status() != fleet.OK || res.Attempts != 1 {
					t.Errorf("%+v", res)
				}
			}
			if text, err := os.ReadFile(log); err != nil || string(text) != strings.Repeat("ran\n", n) {
				t.Errorf("it ran: %q, %v", text, err)
			}
			if got := connections.Load(); got != n+1 {
				t.Errorf("%d connections, want one a host and one more", got)
			}
		})
	}
}
