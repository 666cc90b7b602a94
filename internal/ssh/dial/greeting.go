package dial

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/transport"
)

// greeting classifies a server's text before the key exchange: whether an end of the connection
// means "slow down", "no SSH here" or a broken server.
type greeting struct{ *transport.Greeting }

// turnedAway reports whether an end of the connection now means "slow down": no key exchange was
// seen, and no text but sshd's own.
func (g greeting) turnedAway() bool {
	return !g.More && (g.Version != "" || len(g.Text) == 0 || openssh.TurnedAway(string(g.Text)))
}

// wrong reports whether the peer spoke, but not SSH 2.
func (g greeting) wrong() bool { return g.Version == "" && len(g.Text) > 0 && !g.slow() }

// slow reports whether the peer has sent the beginning of a version line and nothing else.
func (g greeting) slow() bool {
	said := string(g.Text)
	return g.Version == "" && said != "" && !strings.Contains(said, "\n") && slices.ContainsFunc([]string{"SSH-2.0-", "SSH-1.99-"}, func(start string) bool {
		return strings.HasPrefix(said, start) || strings.HasPrefix(start, said)
	})
}

func (g greeting) quoted() string {
	const most = 128
	return strconv.QuoteToASCII(string(bytes.TrimSpace(g.Text[:min(len(g.Text), most)])))
}
