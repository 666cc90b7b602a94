package openssh

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Negotiation is the content of one ssh's debug output.
type Negotiation struct {
	Got        alg.Suite // names of the client-to-server direction
	Reverse    alg.Suite // cipher and MAC of the other direction
	Rekeys     int       // key exchanges after the first
	Banner     string    // software version of the server, such as "OpenSSH_9.2p1 Debian-2+deb12u6"
	Server     alg.Offer // the server's lists; only with -vv
	Keyed      bool      // the first key exchange is complete
	Serving    bool      // the server takes requests for a login
	LoggedIn   bool
	Strict     bool   // both sides do strict key exchange (CVE-2023-48795); only with -vv
	Foreign    string // the first line before the version line that is not sshd's own
	KeyFile    string // known_hosts file that holds another key of the host; "" if none does
	Multiplex  bool   // went through a ControlMaster: nothing was negotiated here
	Complaints []string
}

// word is the first word of text.
func word(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// direction reads "cipher: aes128-ctr MAC: hmac-sha2-256 compression: none", up to 7.0 "aes128-ctr
// hmac-sha2-256 none".
func direction(text string) (cipher, mac string) {
	fields := strings.Fields(text)
	if len(fields) == 6 && fields[0] == "cipher:" && fields[2] == "MAC:" {
		return fields[1], implicit(fields[3])
	}
	if len(fields) == 3 {
		return fields[0], implicit(fields[1])
	}
	return "", ""
}

// implicit turns OpenSSH's word for "the cipher authenticates" into "".
func implicit(mac string) string {
	if mac == "<implicit>" {
		return ""
	}
	return mac
}

// Reader makes a Negotiation of the events of one ssh.
type Reader struct {
	n         Negotiation
	proposals proposals
}

// ParseVerbose parses the debug output of ssh -v or -vv.
func ParseVerbose(text string) Negotiation {
	var r Reader
	for line := range strings.Lines(text) {
		r.Take(ReadEvent(line))
	}
	return r.Negotiation()
}

// Take reads one event of ssh's log.
func (r *Reader) Take(e Event) {
	if e.Kind == Detail {
		r.proposals.take(e.Text, &r.n.Server)
	}
	r.n.take(e)
}

// Negotiation returns the content of the events so far.
func (r *Reader) Negotiation() Negotiation {
	n := r.n
	n.Rekeys = max(0, n.Rekeys-1)
	n.Strict = r.proposals.strict == [2]bool{true, true}
	return n
}

func (n *Negotiation) take(e Event) {
	switch e.Kind {
	case KexAlgorithm:
		n.Got.Kex = word(e.Text)
	case HostKeyType:
		n.Got.HostKey = word(e.Text)
	case ClientToServer:
		n.Got.Cipher, n.Got.MAC = direction(e.Text)
	case ServerToClient:
		n.Reverse.Cipher, n.Reverse.MAC = direction(e.Text)
	case NewKeys:
		n.Rekeys++
		n.Keyed = true
	case AuthStarted:
		n.Serving = true
	case PreBanner:
		if !TurnedAway(e.Text) {
			n.Foreign = cmp.Or(n.Foreign, e.Text)
		}
	case ServerVersion:
		n.Banner = e.Text
	case LoggedIn:
		n.LoggedIn = true
	case Multiplexed, MasterOpened:
		n.Multiplex = true
	case WrongKey:
		n.KeyFile = e.Text
	case Message:
		n.Complaints = append(n.Complaints, e.Text)
	}
}

// AgentToo is appended to a timeout message where the agent, not only the server, may be silent.
const AgentToo = "; an agent may be silent, too"

// waits describes the event that a login waits for in each phase, and whether an agent may cause
// it.
var waits = map[record.Phase]struct {
	words string
	agent bool
}{
	record.PhaseVersion: {words: "the exchange of version lines"},
	record.PhaseKexInit: {words: "the exchange of lists of algorithms"},
	record.PhaseKex:     {words: "the key exchange"},
	record.PhaseService: {"the request for the login service", true}, // ssh asks its agent meanwhile
	record.PhaseQuery:   {"the login", true},
	record.PhaseSign:    {"the login", true},
	record.PhaseChannel: {words: "the opening of a session"},
	record.PhaseExec:    {words: "the start of the command"},
	record.PhaseCommand: {words: "the command"},
}

// During describes the event that a login waits for in a phase, "" where its name says it, and
// reports whether an agent may be silent there.
func During(p record.Phase) (words string, agent bool) { return waits[p].words, waits[p].agent }

// stage returns the phase that a login is in.
func (n *Negotiation) stage() record.Phase {
	switch {
	case n.Banner == "":
		return record.PhaseVersion
	case n.Got.Kex == "" && len(n.Server.Kex) == 0:
		return record.PhaseKexInit
	case !n.Keyed:
		return record.PhaseKex
	case !n.Serving && !n.LoggedIn:
		return record.PhaseService
	case !n.LoggedIn:
		return record.PhaseSign
	}
	return record.PhaseExec
}

// Late returns the failure of a login that took too long.
func (n *Negotiation) Late(limit time.Duration) Failed {
	f := Failed{Outcome: record.TimedOut, KeyFile: n.KeyFile}
	during, agent := During(n.stage())
	f.Said = fmt.Sprintf("no answer in %s during %s", limit, during)
	switch said := n.NotSSH(); {
	case said != "":
		f.Said, f.Cause = said, NotSSH
	case agent:
		f.Said, f.Cause = f.Said+AgentToo, SilentAgent
	}
	return f
}

// NotSSH returns the text that a server sent instead of a version; "" where it sent none.
func (n *Negotiation) NotSSH() string {
	if n.Banner != "" || n.Foreign == "" {
		return ""
	}
	return fmt.Sprintf("the server sent %q instead of an SSH version", n.Foreign)
}

// proposals finds the server's KEXINIT in the lines of ssh -vv. Only the client-to-server lists are
// kept: servers offer the same ones both ways.
type proposals struct {
	peer bool // we are in the server's proposal
	old  int  // lines of the form up to 7.0 so far
	// strict holds the signals of strict key exchange of the client and the server.
	strict [2]bool
}

// The signals by which either side announces strict key exchange.
const (
	clientStrict = "kex-strict-c-v00@openssh.com"
	serverStrict = "kex-strict-s-v00@openssh.com"
)

// oldProposal is the number of lines of one proposal up to 7.0: ten lists, without names, and two
// numbers. The client's comes first.
const oldProposal = 12

// take reads one line of the two proposals, without "debug2: ".
func (p *proposals) take(rest string, offer *alg.Offer) {
	if owner, ok := strings.CutSuffix(rest, " KEXINIT proposal"); ok {
		p.peer = owner == "peer server"
		return
	}
	if names, ok := strings.CutPrefix(rest, "KEX algorithms: "); ok {
		for _, name := range strings.Split(strings.TrimSpace(names), ",") {
			p.strict[0] = p.strict[0] || name == clientStrict && !p.peer
			p.strict[1] = p.strict[1] || name == serverStrict && p.peer
		}
	}
	if names, ok := strings.CutPrefix(rest, "kex_parse_kexinit: "); ok {
		lists := map[int]*[]string{0: &offer.Kex, 1: &offer.HostKeys, 2: &offer.Ciphers, 4: &offer.MACs}
		keep(lists[p.old-oldProposal], names)
		p.old++
		return
	}
	if !p.peer {
		return
	}
	for prefix, list := range map[string]*[]string{
		"KEX algorithms: ":      &offer.Kex,
		"host key algorithms: ": &offer.HostKeys,
		"ciphers ctos: ":        &offer.Ciphers,
		"MACs ctos: ":           &offer.MACs,
	} {
		if names, ok := strings.CutPrefix(rest, prefix); ok {
			keep(list, names)
		}
	}
}

// keep fills a list once: a rekey proposes again.
func keep(list *[]string, names string) {
	if names = strings.TrimSpace(names); list != nil && *list == nil && names != "" {
		*list = strings.Split(names, ",")
	}
}

// Failed is an ssh that opened no session, or lost it.
type Failed struct {
	Outcome record.Outcome
	Said    string // in ssh's words, or ours, which may quote a host's
	// Cause comes from ssh's own messages, or its silence. A host's messages give none.
	Cause Cause
	// KeyFile is a known_hosts file that holds another key of the host; "" if none does.
	KeyFile string
}

// because returns a failure for which ssh gives a reason.
func because(cause Cause, said string) Failed {
	return Failed{Outcome: OutcomeOf(cause), Said: said, Cause: cause}
}

// Failure returns why an ssh failed, from its debug log and its standard error, and quotes the line
// with the reason. Until a login is possible standard error has the messages of a jump host's ssh,
// then the server's greeting (Banner), and after the login the output of the remote side: neither
// proves anything, and they cannot be distinguished, so that none of it counts as the reason.
func Failure(n Negotiation, stderr string) Failed {
	f := n.failure(stderr)
	f.KeyFile = n.KeyFile
	return f
}

func (n *Negotiation) failure(stderr string) Failed {
	const wordless = "the session ended without a word from ssh: "
	lines := slices.Clone(n.Complaints)
	said := complaints(stderr)
	switch {
	case !n.Serving && !n.LoggedIn:
		lines = append(lines, said...)
	case n.LoggedIn && HasExpired(said):
		return because(CauseOf(said))
	case n.LoggedIn && len(lines) == 0 && len(said) > 0:
		return because(Unknown, fmt.Sprintf(wordless+"the last line on standard error, which may be the server's banner, is %q", said[len(said)-1]))
	}
	cause, line := CauseOf(lines)
	switch other := n.NotSSH(); {
	case other != "":
		return because(NotSSH, other)
	case cause == HungUp && n.Banner == "": // MaxStartups and source penalties hang up there (sshd_config(5))
		return because(NoVersion, line)
	case cause != Unknown:
		return because(cause, line)
	case len(lines) > 0:
		return because(Unknown, lines[len(lines)-1])
	case n.LoggedIn:
		return because(Unknown, wordless+"see whether the account has a usable login shell")
	}
	return because(Unknown, "ssh ended without a word")
}

// complaints returns the lines of standard error without the debug output that the ssh of a jump
// host writes there, and without the greeting of that host, which comes between its service and the
// login: of the lines there only the last can be ssh's.
func complaints(stderr string) []string {
	var lines []string
	greeted := -1 // lines before a greeting; none is expected
	ungreeted := func(last int) {
		if greeted >= 0 {
			lines = append(lines[:greeted], lines[max(greeted, len(lines)-last):]...)
		}
		greeted = -1
	}
	for line := range strings.Lines(stderr) {
		switch e := ReadEvent(line); e.Kind {
		case Message:
			lines = append(lines, e.Text)
		case AuthStarted:
			greeted = len(lines)
		case LoggedIn:
			ungreeted(0)
		}
	}
	ungreeted(1)
	return lines
}
