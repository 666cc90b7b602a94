package session

import "sshpace/internal/fleet"

// During says in ssh's words in what a host was too late that had come to a phase: whether it had said its version by
// then, and whether the command was sent.
func During(p fleet.Phase, greeted, sent bool) string {
	switch {
	case sent:
		return "the start of the command"
	case p >= fleet.PhaseExec:
		return "the opening of a session"
	case p >= fleet.PhaseHostkey:
		return "login"
	case p == fleet.PhaseKex && greeted:
		return "key exchange"
	case p == fleet.PhaseKex:
		return "banner exchange"
	}
	return "connect"
}
