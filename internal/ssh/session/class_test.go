package session

import (
	"testing"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/openssh"
)

// TestClasses: every cause that ssh tells means something to a run.
func TestClasses(t *testing.T) {
	for c := openssh.Unknown + 1; c < openssh.SilentAgent; c++ {
		if classes[c] == fleet.NoFailure {
			t.Errorf("cause %d (%s) has no class", c, c.Advice())
		}
	}
}
