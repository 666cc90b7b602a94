package dial

import (
	"strings"
	"testing"

	"sshpace/internal/fleet"
	"sshpace/internal/ssh/transport"
)

// TestDisconnectAdvice: every cause that a server names as it disconnects has its advice.
func TestDisconnectAdvice(t *testing.T) {
	for message, want := range map[string]string{
		"Too many authentication failures": "IdentitiesOnly", "no matching cipher found": "sshpace config", "Not allowed at this time": "PerSourcePenalties", "bye": "",
	} {
		e := disconnected(fleet.Lost, "192.0.2.1", &transport.DisconnectError{Reason: 2, Message: message})
		if !strings.Contains(e.Hint, want) || want == "" && e.Hint != "" {
			t.Errorf("%s: hint %q, want %q", message, e.Hint, want)
		}
	}
}
