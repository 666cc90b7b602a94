//go:build linux

package programs

import (
	"testing"

	"sshpace/internal/ssh/openssh"
)

// What PuTTY says in one sentence is told whole, and other lines are not drawn into it.
func TestPlain(t *testing.T) {
	const said = "Using username \"x\".\nThe cipher selected for this session is\nChaCha20-Poly1305, which, with this server, is vulnerable to\nthe 'Terrapin' attack, potentially allowing an\nattacker to modify the session.\nFATAL ERROR: Cannot confirm a weak crypto primitive in batch mode\n"
	const want = "The cipher selected for this session is ChaCha20-Poly1305, which, with this server, is vulnerable to the 'Terrapin' attack, potentially allowing an attacker to modify the session."
	if got := openssh.Reason(plain(said)); got != want {
		t.Errorf("got\n%s, want\n%s", got, want)
	}
}
