//go:build linux

package doctor

import (
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/bench/login"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// trace holds the times in the log of one login (ssh -vvv).
type trace struct {
	spans           map[login.Phase]time.Duration // the spans that it has
	vain            []string
	proxy, user     string
	accepted        string // the rest of ssh's line
	address         string
	failed          []Attempt
	commands        []Command // of Match exec; ssh runs each once in every pass over its files
	negotiation     openssh.Negotiation
	zipped, proxied bool
}

// Spans of a login besides its phases.
const (
	whole      login.Phase = "whole"
	cpu        login.Phase = "cpu"
	connecting login.Phase = "connecting" // to the address that answered
	lookup     login.Phase = "lookup"
	ordering   login.Phase = "ordering" // asking which of the host's keys are known, before the key exchange
	hostKey    login.Phase = "all about the host's key"
	exchange   login.Phase = "exchange" // without that
	kerberos   login.Phase = "gssapi"
	offering   login.Phase = "offering" // keys that the server did not want
	known      login.Phase = "known"    // offering the key that it wanted
	signing    login.Phase = "signing"
	entry      login.Phase = "entry"
)

// nth returns the span of a failed address, or of a command.
func nth(i int, text string) login.Phase { return login.Phase(strconv.Itoa(i) + " " + text) }

// read parses the log of a login.
func read(l *login.Login) *trace {
	t := &trace{spans: map[login.Phase]time.Duration{whole: l.Whole, cpu: l.ClientCPU, offering: 0}}
	for _, s := range l.Spans {
		t.spans[s.Phase] = s.WallNS
	}
	var n openssh.Reader
	latest := map[openssh.Kind]string{}
	for _, line := range l.Lines {
		n.Take(line.Event)
		latest[line.Kind] = line.Text
	}
	t.negotiation = n.Negotiation()
	t.proxy, t.proxied = latest[openssh.Proxy]
	_, user, _ := strings.Cut(latest[openssh.Authenticating], " as '")
	t.user, t.zipped = strings.TrimSuffix(user, "'"), strings.Contains(latest[openssh.ClientToServer], " zlib")
	t.run(l)
	t.connect(l)
	t.first(l, lookup, openssh.Resolving, openssh.Connecting)
	t.first(l, ordering, openssh.ServerVersion, openssh.KexInitSent)
	t.prove(l)
	t.spans[hostKey] = t.spans[ordering] + t.spans[record.PhaseHostKey]
	t.spans[exchange] = t.spans[record.PhaseKexInit] + t.spans[record.PhaseKex] + t.spans[record.PhaseNewKeys] - t.spans[ordering]
	return t
}

// first records a span up to the first line of a kind, from the last one of another before it.
func (t *trace) first(l *login.Login, span login.Phase, from, to openssh.Kind) {
	for _, s := range l.Between(from, from, to) {
		if s.End.Kind == to {
			t.spans[span] = s.Took()
			return
		}
	}
}

// places are the lines with the place of a command of Match exec, after it has ended (readconf.c).
var places = wildcard.Regexp(`^(.+) line (\d+): (?:not |no )?match(?:ed)? '!?exec `)

// run parses the commands of Match exec, and their places.
func (t *trace) run(l *login.Login) {
	for i, s := range l.Between(openssh.ProgramEvent, openssh.ProgramEvent, openssh.ProgramEnded) {
		c := Command{Text: strings.Trim(s.Begin.Text, "'")}
		if t.commands = append(t.commands, c); s.End.Kind == openssh.ProgramEnded {
			t.spans[nth(i, c.Text)] = s.Took()
		}
	}
	begun := 0
	for _, line := range l.Lines {
		if line.Kind == openssh.ProgramEvent {
			begun++
		}
		if line.Kind != openssh.Trace || begun == 0 {
			continue
		}
		if m := places().FindStringSubmatch(line.Text); m != nil {
			last := &t.commands[begun-1]
			last.File = m[1]
			last.Line, _ = strconv.Atoi(m[2])
		}
	}
}

// connect parses the addresses that were tried, and "ADDRESS port N: REASON" of those that do not
// answer.
func (t *trace) connect(l *login.Login) {
	for _, s := range l.Between(openssh.Connecting, openssh.Connecting, openssh.NotConnected, openssh.Connected) {
		t.address, _ = s.Begin.Place()
		switch s.End.Kind {
		case openssh.Connected:
			t.spans[connecting] = s.Took()
		case openssh.NotConnected:
			_, why, _ := strings.Cut(s.End.Text, ": ")
			t.spans[nth(len(t.failed), t.address)] = s.Took()
			t.spans[record.PhaseTCP] -= s.Took() // which is about the address that answered
			t.failed = append(t.failed, Attempt{Address: t.address, Why: why})
		}
	}
}

// prove parses the methods and keys that are tried, and the signature, which goes to the server
// together with the next request (RFC 4252 section 7).
func (t *trace) prove(l *login.Login) {
	for _, s := range l.Between(openssh.NextMethod, openssh.NextMethod) {
		if s.End.Kind == openssh.NextMethod && strings.HasPrefix(s.Begin.Text, "gssapi") { // in vain
			t.spans[kerberos] += s.Took()
		}
	}
	for _, s := range l.Between(openssh.KeyOffered, openssh.KeyOffered, openssh.NextMethod, openssh.KeyAccepted) {
		switch t.accepted = s.Begin.Text; s.End.Kind {
		case openssh.KeyAccepted:
			t.spans[known] = s.Took()
		case openssh.KeyOffered, openssh.NextMethod:
			t.vain = append(t.vain, s.Begin.Text)
			t.spans[offering] += s.Took()
		}
	}
	signed := l.Between(openssh.Signing, openssh.AuthRequest)
	if len(signed) == 0 || signed[0].End.Kind != openssh.AuthRequest {
		return
	}
	t.spans[signing] = signed[0].Took()
	if in, ok := l.First(openssh.LoggedIn); ok {
		t.spans[entry] = in.At - signed[0].End.At
	}
}
