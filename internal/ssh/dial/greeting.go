package dial

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/ssh/openssh"
	"sshpace/internal/ssh/transport"
)

// greeting judges what a server said before the key exchange: whether an end of the
// connection means "slow down", "no SSH here" or a broken server.
type greeting struct{ *transport.Greeting }

// turnedAway tells whether an end of the connection now means "slow down":
// nothing of the key exchange was seen, and nothing else than sshd's own words.
func (g greeting) turnedAway() bool {
	return !g.More && (g.Version != "" || len(g.Text) == 0 || openssh.TurnedAway(string(g.Text)))
}

// wrong tells whether the peer spoke, but no SSH 2.
func (g greeting) wrong() bool { return g.Version == "" && len(g.Text) > 0 && !g.slow() }

// slow tells whether the peer has sent the beginning of a version line and nothing
// else.
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
