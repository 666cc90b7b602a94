package openssh

import (
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Negotiation is what the debug output of one ssh tells.
type Negotiation struct {
	Got        alg.Suite // names of the client-to-server direction
	Reverse    alg.Suite // cipher and MAC of the other direction
	Rekeys     int       // key exchanges after the first
	Banner     string    // software version of the server, such as "OpenSSH_9.2p1 Debian-2+deb12u6"
	Server     alg.Offer // the server's lists; only with -vv
	LoggedIn   bool
	Strict     bool   // both sides do strict key exchange (CVE-2023-48795); only with -vv
	KeyFile    string // known_hosts file that holds another key of the host; "" if none does
	Multiplex  bool   // went through a ControlMaster: nothing was negotiated here
	Complaints []string
}

// debugLines are the beginnings of the lines that matter, and what to do with
// the rest (kex.c: kex_choose_conf, packet.c, sshconnect2.c). Up to 7.0 ssh does
// not name the key exchange and the host key.
var debugLines = []struct {
	prefix string
	take   func(n *Negotiation, rest string)
}{
	{"debug1: kex: algorithm: ", func(n *Negotiation, rest string) { n.Got.Kex = word(rest) }},
	{"debug1: kex: host key algorithm: ", func(n *Negotiation, rest string) { n.Got.HostKey = word(rest) }},
	{"debug1: kex: client->server ", func(n *Negotiation, rest string) { n.Got.Cipher, n.Got.MAC = direction(rest) }},
	{"debug1: kex: server->client ", func(n *Negotiation, rest string) { n.Reverse.Cipher, n.Reverse.MAC = direction(rest) }},
	{"debug1: SSH2_MSG_NEWKEYS received", func(n *Negotiation, _ string) { n.Rekeys++ }},
	{"debug1: Remote protocol version ", func(n *Negotiation, rest string) {
		_, software, _ := strings.Cut(rest, "remote software version ")
		n.Banner = strings.TrimSpace(software)
	}},
	{"Authenticated to ", func(n *Negotiation, _ string) { n.LoggedIn = true }},
	{"debug1: Authentication succeeded", func(n *Negotiation, _ string) { n.LoggedIn = true }},
	{"debug1: auto-mux: Trying existing master", func(n *Negotiation, _ string) { n.Multiplex = true }},
	{"Offending ", func(n *Negotiation, rest string) {
		if _, place, ok := strings.Cut(rest, " key in "); ok {
			n.KeyFile = place[:max(0, strings.LastIndexByte(place, ':'))] // without the line
		}
	}},
	{"debug1: mux_client_", func(n *Negotiation, _ string) { n.Multiplex = true }},
}

// word is the first word of text.
func word(text string) string {
	word, _, _ := strings.Cut(text, " ")
	return word
}

// direction reads "cipher: aes128-ctr MAC: hmac-sha2-256 compression: none", up
// to 7.0 "aes128-ctr hmac-sha2-256 none".
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

// quiet are the beginnings of lines in the log of ssh -v that are no complaints.
var quiet = []string{"debug", "OpenSSH_", "Authenticated ", "Transferred: ", "Bytes per second: "}

// ParseVerbose reads the debug output of ssh -v or -vv.
func ParseVerbose(text string) Negotiation {
	var n Negotiation
	proposals := proposals{strict: map[string]bool{}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		proposals.take(line, &n.Server)
		for _, debug := range debugLines {
			if rest, ok := strings.CutPrefix(line, debug.prefix); ok {
				debug.take(&n, rest)
			}
		}
		if complaint := strings.TrimSpace(line); complaint != "" && !hasPrefix(line, quiet) {
			n.Complaints = append(n.Complaints, complaint)
		}
	}
	n.Rekeys = max(0, n.Rekeys-1)
	n.Strict = proposals.strict[clientStrict] && proposals.strict[serverStrict]
	return n
}

func hasPrefix(line string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(line, prefix) })
}

// proposals finds the server's KEXINIT in the lines of ssh -vv. Only the
// client-to-server lists are kept: servers offer the same ones both ways.
type proposals struct {
	peer bool // we are in the server's proposal
	old  int  // lines of the form up to 7.0 so far
	// strict holds the signals of strict key exchange that were seen.
	strict map[string]bool
}

// The signals by which either side says that it does strict key exchange.
const (
	clientStrict = "kex-strict-c-v00@openssh.com"
	serverStrict = "kex-strict-s-v00@openssh.com"
)

// oldProposal is how many lines one proposal has up to 7.0: ten lists, which
// have no names, and two numbers. The client's stands first.
const oldProposal = 12

func (p *proposals) take(line string, offer *alg.Offer) {
	rest, ok := strings.CutPrefix(line, "debug2: ")
	if !ok {
		return
	}
	if owner, ok := strings.CutSuffix(rest, " KEXINIT proposal"); ok {
		p.peer = owner == "peer server"
		return
	}
	if names, ok := strings.CutPrefix(rest, "KEX algorithms: "); ok {
		for _, name := range strings.Split(strings.TrimSpace(names), ",") {
			if name == clientStrict && !p.peer || name == serverStrict && p.peer {
				p.strict[name] = true
			}
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

// failures maps what ssh says when it fails to outcomes; the first match wins.
var failures = []struct {
	text    string
	outcome record.Outcome
}{
	{"has changed and you have requested strict checking", record.HostKey},
	{"host key is known for", record.HostKey},
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", record.HostKey},
	{"Host key verification failed", record.HostKey},
	{"Could not resolve hostname", record.Unresolved},
	{"host key mismatch", record.HostKey}, // the built-in client
	{"Permission denied (", record.Denied},
	{"unable to authenticate", record.Denied}, // the built-in client
	{"Too many authentication failures", record.Denied},
	{"Bad configuration option", record.Broken},
	{"Bad owner or permissions", record.Broken},
	{"no matching ", record.Mismatched},
	{"Unable to negotiate", record.Mismatched},
	{"no common algorithm", record.Mismatched},      // the built-in client
	{"administratively prohibited", record.Refused}, // by a jump host
	{"Connection refused", record.Refused},
	{"No route to host", record.Refused},
	{"Network is unreachable", record.Refused},
	{"timed out", record.TimedOut},
	{"not responding", record.TimedOut},
	{"kex_exchange_identification", record.Refused},
	{"ssh_exchange_identification", record.Refused},
	{"Not allowed at this time", record.Refused},
	{"Exceeded MaxStartups", record.Refused},
}

// breaks are what ssh says when a connection breaks. Before the server has said
// who it is, that is how a refusal looks: MaxStartups and source penalties hang
// up there (sshd_config(5)).
var breaks = []string{"Connection reset by", "Connection closed by", "Broken pipe", "Corrupted MAC"}

// Failure classifies why an ssh failed, from its debug log and what it wrote to
// standard error, and quotes the line that says it. After the login standard
// error is the remote side's to write, and proves nothing.
func Failure(n Negotiation, stderr string) (record.Outcome, string) {
	lines := slices.Clone(n.Complaints)
	if said := complaints(stderr); !n.LoggedIn {
		lines = append(lines, said...)
	} else if len(lines) == 0 && len(said) > 0 {
		return record.Broken, said[len(said)-1]
	}
	for _, failure := range failures {
		if line, ok := mentions(lines, failure.text); ok {
			return failure.outcome, line
		}
	}
	for _, text := range breaks {
		line, ok := mentions(lines, text)
		if ok && n.Banner == "" {
			return record.Refused, line
		}
		if ok {
			return record.Broken, line
		}
	}
	if len(lines) > 0 {
		return record.Broken, lines[len(lines)-1]
	}
	if n.LoggedIn {
		return record.Broken, "the session ended without a word: see whether the account has a usable login shell"
	}
	return record.Broken, "ssh ended without a word"
}

// complaints are the lines of standard error without the debug output that the
// ssh of a jump host writes there.
func complaints(stderr string) []string {
	var lines []string
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); line != "" && !hasPrefix(line, quiet) {
			lines = append(lines, line)
		}
	}
	return lines
}

func mentions(lines []string, text string) (line string, ok bool) {
	i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, text) })
	if i < 0 {
		return "", false
	}
	return lines[i], true
}
