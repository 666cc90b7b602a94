//go:build linux

package doctor

import (
	"fmt"
	"strings"
	"time"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/login"
)

// A delayed acknowledgement takes 40 ms on Linux, as package login has it, at most 200 ms
// (TCP_DELACK_MAX), and a little more where the machine is busy. More than usualStall after a
// successful login has another cause.
const (
	usualStall = 75 * time.Millisecond
	mostStall  = 220 * time.Millisecond
)

// stallCheck is about a cost that every login over a fast link has.
var stallCheck = Check{"stall", "waits of small packets for acknowledgements", []Probe{LoggingIn, Shared}, stalls}

// stalls finds the waits of a login in which Nagle's algorithm on one side waits for a delayed
// acknowledgement of the other: between the new keys and the start of the login service, and
// between the login and the open session. Everybody's logins have them: it is one finding, and not
// a fault.
func stalls(f *Facts) []Finding {
	var cost stats.Interval
	var seen, lines []string
	if s := beyond(f.Logins.Service, roundTrip(f)); isStall(s) {
		cost = s
		seen, lines = append(seen, "before the login "+Milliseconds(s)), append(lines, quickackThere(client(f, "CLIENT"), f.Route)...)
	}
	if s := beyond(f.Logins.Session, roundTrip(f)); isStall(s) && s.Lo <= float64(usualStall) && (f.Own || f.Route != "") {
		if cost.N == 0 {
			cost = s
		} else {
			cost = cost.Plus(s)
		}
		seen, lines = append(seen, "between the login and the open session "+Milliseconds(s)), append(lines, "# on this machine", quickack(f.Route))
	}
	if cost.N == 0 || cost.Value < stats.Margin*f.Logins.Whole.Value {
		return nil
	}
	found := Finding{
		What: "each side waits for an acknowledgement that the other delays (Nagle's algorithm)", Minor: true,
		Cost: cost, Per: perLogin, Evidence: strings.Join(seen, ", ") + fmt.Sprintf(" more than a round trip (%s)", trip(f)),
		Where: "as root, until the next restart (to undo: the same with quickack 0); every ssh over a fast link has this, sshpace run does not", Do: strings.Join(lines, "\n"), Gain: ofLogin(f, cost),
	}
	if f.Own { // nobody logs in to this server
		found.Where, found.Do = "on this machine, with a host of yours; every ssh over a fast link has this, sshpace run does not", "sshpace doctor HOST"
	}
	return []Finding{found}
}

func isStall(s stats.Interval) bool {
	return s.N > 0 && s.Lo >= float64(login.ShortestStall) && s.Lo <= float64(mostStall)
}

// quickackThere returns lines for the server's root that set the route attribute quickack
// (ip-route(8)) for a client. They ask for the route itself: the account's shell, our only source,
// could name any. Where the route to the server is local, so is the one back.
func quickackThere(client, here string) []string {
	words := " quickack 1"
	if strings.HasPrefix(here, "local ") {
		words = ofLocal + words
	}
	return []string{"# on the server", "r=$(ip route get " + client + " | sed 's/ uid .*//;q')", "ip route replace $r" + words}
}

// ofLocal is the part of a route to this machine itself that `ip route get` does not print.
const ofLocal = " table local proto kernel scope host"

// quickack returns the command that adds quickack to a route of this machine, from the output of
// `ip route get`.
func quickack(got string) string {
	words := strings.Fields(got)
	local := len(words) > 0 && words[0] == "local"
	var keep []string
	for i := 0; i < len(words) && words[i] != "uid" && words[i] != "cache"; i++ {
		keep = append(keep, words[i])
	}
	if local {
		keep = append(keep, strings.Fields(ofLocal)...)
	}
	return "ip route replace " + shell.Line(keep...) + " quickack 1"
}
