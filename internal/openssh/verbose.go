package openssh

import (
	"regexp"
	"strings"

	"sshpace/internal/alg"
	"sshpace/internal/bench"
)

// Negotiation is what the debug output of one ssh tells.
type Negotiation struct {
	Got        alg.Suite // names of the client-to-server direction
	Reverse    alg.Suite // cipher and MAC of the other direction
	Rekeys     int       // key exchanges after the first
	Banner     string    // software version of the server, such as "OpenSSH_9.2p1 Debian-2+deb12u6"
	Server     alg.Offer // the server's lists; only with -vv
	LoggedIn   bool
	Multiplex  bool // went through a ControlMaster: nothing was negotiated here
	Complaints []string
}

// debugLines are the lines that matter; they are the same from 6.3 to 10.5
// (kex.c:kex_choose_conf, packet.c, sshconnect2.c).
var debugLines = []struct {
	pattern *regexp.Regexp
	take    func(n *Negotiation, match []string)
}{
	{regexp.MustCompile(`^debug1: kex: algorithm: (\S+)`), func(n *Negotiation, m []string) { n.Got.Kex = m[1] }},
	{regexp.MustCompile(`^debug1: kex: host key algorithm: (\S+)`), func(n *Negotiation, m []string) { n.Got.HostKey = m[1] }},
	{regexp.MustCompile(`^debug1: kex: client->server cipher: (\S+) MAC: (\S+)`), func(n *Negotiation, m []string) {
		n.Got.Cipher, n.Got.MAC = m[1], implicit(m[2])
	}},
	{regexp.MustCompile(`^debug1: kex: server->client cipher: (\S+) MAC: (\S+)`), func(n *Negotiation, m []string) {
		n.Reverse = alg.Suite{Cipher: m[1], MAC: implicit(m[2])}
	}},
	{regexp.MustCompile(`^debug1: SSH2_MSG_NEWKEYS received`), func(n *Negotiation, _ []string) { n.Rekeys++ }},
	{regexp.MustCompile(`^debug1: Remote protocol version [0-9.]+, remote software version (.*)`), func(n *Negotiation, m []string) {
		n.Banner = strings.TrimSpace(m[1])
	}},
	{regexp.MustCompile(`^(?:debug1: )?Authenticat(?:ed to|ion succeeded)`), func(n *Negotiation, _ []string) { n.LoggedIn = true }},
	{regexp.MustCompile(`^debug1: (?:auto-mux: Trying existing master|mux_client_)`), func(n *Negotiation, _ []string) { n.Multiplex = true }},
}

// implicit turns OpenSSH's word for "the cipher authenticates" into "".
func implicit(mac string) string {
	if mac == "<implicit>" {
		return ""
	}
	return mac
}

// ParseVerbose reads the debug output of ssh -v or -vv.
func ParseVerbose(text string) Negotiation {
	var n Negotiation
	proposal := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if owner, ok := proposalOf(line); ok {
			proposal = owner
		}
		if proposal == "peer server" {
			n.takeOffer(line)
		}
		for _, debug := range debugLines {
			if match := debug.pattern.FindStringSubmatch(line); match != nil {
				debug.take(&n, match)
			}
		}
		if !strings.HasPrefix(line, "debug") && strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "OpenSSH_") &&
			!strings.HasPrefix(line, "Authenticated ") && !strings.HasPrefix(line, "Transferred: ") && !strings.HasPrefix(line, "Bytes per second: ") {
			n.Complaints = append(n.Complaints, strings.TrimSpace(line))
		}
	}
	n.Rekeys = max(0, n.Rekeys-1)
	return n
}

// proposalOf recognises "debug2: peer server KEXINIT proposal".
func proposalOf(line string) (owner string, ok bool) {
	rest, ok := strings.CutPrefix(line, "debug2: ")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, " KEXINIT proposal")
}

// takeOffer reads one line of a proposal. Only the client-to-server lists are
// kept: servers offer the same ones in both directions.
func (n *Negotiation) takeOffer(line string) {
	for prefix, list := range map[string]*[]string{
		"debug2: KEX algorithms: ":      &n.Server.Kex,
		"debug2: host key algorithms: ": &n.Server.HostKeys,
		"debug2: ciphers ctos: ":        &n.Server.Ciphers,
		"debug2: MACs ctos: ":           &n.Server.MACs,
	} {
		if names, ok := strings.CutPrefix(line, prefix); ok && *list == nil {
			*list = strings.Split(strings.TrimSpace(names), ",")
		}
	}
}

// failures maps what ssh says when it fails to outcomes; the first match wins.
var failures = []struct {
	text    string
	outcome bench.Outcome
}{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", bench.HostKey},
	{"Host key verification failed", bench.HostKey},
	{"No ED25519 host key is known", bench.HostKey},
	{"host key is known for", bench.HostKey},
	{"Could not resolve hostname", bench.Unresolved},
	{"Permission denied", bench.Denied},
	{"Too many authentication failures", bench.Denied},
	{"no matching ", bench.Refused},
	{"Unable to negotiate", bench.Refused},
	{"Connection refused", bench.Refused},
	{"kex_exchange_identification", bench.Refused},
	{"ssh_exchange_identification", bench.Refused},
	{"Not allowed at this time", bench.Refused},
	{"Exceeded MaxStartups", bench.Refused},
	{"Connection timed out", bench.TimedOut},
	{"Operation timed out", bench.TimedOut},
	{"timed out", bench.TimedOut},
	{"No route to host", bench.Refused},
	{"Network is unreachable", bench.Refused},
	{"Connection reset by", bench.Broken},
	{"Connection closed by", bench.Broken},
	{"Broken pipe", bench.Broken},
	{"Corrupted MAC", bench.Broken},
}

// Failure classifies why an ssh failed, from its debug log and what it wrote to
// standard error, and quotes the line that says it.
func Failure(n Negotiation, stderr string) (bench.Outcome, string) {
	lines := append(append([]string(nil), n.Complaints...), strings.Split(strings.TrimSpace(stderr), "\n")...)
	for _, failure := range failures {
		for _, line := range lines {
			if strings.Contains(line, failure.text) {
				return early(failure.outcome, n), strings.TrimSpace(line)
			}
		}
	}
	for i := len(lines) - 1; i >= 0; i-- {
		if line := strings.TrimSpace(lines[i]); line != "" {
			return bench.Broken, line
		}
	}
	return bench.Broken, "ssh ended without a word"
}

// early turns a connection that broke before the server had said who it is into
// a refusal: that is how MaxStartups and source penalties look (sshd_config(5)).
func early(outcome bench.Outcome, n Negotiation) bench.Outcome {
	if outcome == bench.Broken && n.Banner == "" {
		return bench.Refused
	}
	return outcome
}
