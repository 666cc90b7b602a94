package session

import "sshpace/internal/fleet"

// During describes in ssh's words the step in which a host was too late, by its phase: whether it
// had sent its version by then, and whether the command was sent.
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
