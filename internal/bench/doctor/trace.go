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

// trace is what the log of one login (ssh -vvv) tells.
type trace struct {
	spans            map[login.Phase]time.Duration // those that it tells of
	vain             []string
	proxy, user      string
	accepted         string // the rest of ssh's line
	address          string
	failed           []Attempt
	commands         []Command // of Match exec; ssh runs each once in every pass over its files
	negotiation      openssh.Negotiation
	zipped, loggedIn bool
	proxied          bool
}

// Spans of a login beside its phases.
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

// nth is the span of an address that was tried in vain, or of a command.
func nth(i int, text string) login.Phase { return login.Phase(strconv.Itoa(i) + " " + text) }

// read takes the log of a login apart.
func read(l *login.Login) *trace {
	t := &trace{spans: map[login.Phase]time.Duration{whole: l.Whole, cpu: l.ClientCPU, offering: 0}}
	for _, s := range l.Spans {
		t.spans[s.Phase] = s.WallNS
	}
	r := reader{trace: t}
	var n openssh.Reader
	for _, line := range l.Lines {
		if take := steps[line.Kind]; take != nil {
			take(&r, line.At, line.Text)
		}
		n.Take(line.Event)
	}
	t.negotiation = n.Negotiation()
	t.spans[hostKey] = t.spans[ordering] + t.spans[record.PhaseHostKey]
	t.spans[exchange] = t.spans[record.PhaseKexInit] + t.spans[record.PhaseKex] + t.spans[record.PhaseNewKeys] - t.spans[ordering]
	return t
}

// reader goes through the lines and knows when what it is in the middle of began.
type reader struct {
	*trace
	resolving, dialing, executing, greeted, trying, offered, signs, sent time.Duration
	method                                                               string
}

// steps are what the events of a login mean.
var steps = map[openssh.Kind]func(r *reader, at time.Duration, rest string){
	openssh.ProgramEvent:  (*reader).execute,
	openssh.ProgramEnded:  (*reader).executed,
	openssh.Trace:         (*reader).place,
	openssh.Resolving:     func(r *reader, at time.Duration, _ string) { r.resolving = at },
	openssh.Connecting:    (*reader).connect,
	openssh.NotConnected:  (*reader).missed,
	openssh.Connected:     func(r *reader, at time.Duration, _ string) { r.spans[connecting] = at - r.dialing },
	openssh.Proxy:         func(r *reader, _ time.Duration, command string) { r.proxied, r.proxy = true, command },
	openssh.ServerVersion: func(r *reader, at time.Duration, _ string) { r.greeted = at },
	openssh.KexInitSent: func(r *reader, at time.Duration, _ string) {
		if r.spans[ordering] == 0 && r.greeted > 0 { // the first one
			r.spans[ordering] = at - r.greeted
		}
	},
	openssh.Authenticating: func(r *reader, _ time.Duration, rest string) {
		_, rest, _ = strings.Cut(rest, " as '")
		r.user = strings.TrimSuffix(rest, "'")
	},
	openssh.ClientToServer: func(r *reader, _ time.Duration, rest string) { r.zipped = strings.Contains(rest, " zlib") },
	openssh.NextMethod:     (*reader).next,
	openssh.KeyOffered:     (*reader).offer,
	openssh.KeyAccepted:    (*reader).accept,
	openssh.Signing:        (*reader).sign,
	openssh.AuthRequest:    (*reader).send,
	openssh.LoggedIn:       (*reader).enter,
}

// places are the lines that say where a command of Match exec stands, once it has
// ended (readconf.c).
var places = wildcard.Regexp(`^(.+) line (\d+): (?:not |no )?match(?:ed)? '!?exec `)

func (r *reader) place(_ time.Duration, rest string) {
	if m := places().FindStringSubmatch(rest); m != nil && len(r.commands) > 0 {
		last := &r.commands[len(r.commands)-1]
		last.File = m[1]
		last.Line, _ = strconv.Atoi(m[2])
	}
}

func (r *reader) execute(at time.Duration, rest string) {
	r.executing = at
	r.commands = append(r.commands, Command{Text: strings.Trim(rest, "'")})
}

func (r *reader) executed(at time.Duration, _ string) {
	if n := len(r.commands); n > 0 {
		r.spans[nth(n-1, r.commands[n-1].Text)] = at - r.executing
	}
}

// connect reads "NAME [ADDRESS] port N."
func (r *reader) connect(at time.Duration, rest string) {
	if _, told := r.spans[lookup]; !told && r.resolving > 0 {
		r.spans[lookup] = at - r.resolving
	}
	r.dialing = at
	_, rest, _ = strings.Cut(rest, "[")
	r.address, _, _ = strings.Cut(rest, "]")
}

// missed reads "ADDRESS port N: REASON".
func (r *reader) missed(at time.Duration, rest string) {
	_, why, _ := strings.Cut(rest, ": ")
	r.spans[nth(len(r.failed), r.address)] = at - r.dialing
	r.failed = append(r.failed, Attempt{Address: r.address, Why: why})
}

func (r *reader) next(at time.Duration, method string) {
	r.fruitless(at)
	r.offered = 0
	r.leave(at)
	r.method, r.trying = method, at
}

// leave ends the method that was tried until now.
func (r *reader) leave(at time.Duration) {
	if strings.HasPrefix(r.method, "gssapi") {
		r.spans[kerberos] += at - r.trying
	}
	r.method = ""
}

func (r *reader) offer(at time.Duration, rest string) {
	r.fruitless(at)
	r.accepted, r.offered = rest, at
}

// fruitless counts the key that was offered last as one that the server did not
// want.
func (r *reader) fruitless(at time.Duration) {
	if r.offered > 0 {
		r.vain = append(r.vain, r.accepted)
		r.spans[offering] += at - r.offered
	}
}

func (r *reader) accept(at time.Duration, _ string) { r.spans[known], r.offered = at-r.offered, 0 }

// sign begins a signature, by the first of several lines about it.
func (r *reader) sign(at time.Duration, _ string) {
	if r.signs == 0 {
		r.signs = at
	}
}

// send ends it: what was signed goes to the server (RFC 4252 section 7).
func (r *reader) send(at time.Duration, _ string) {
	if r.signs > 0 && r.sent == 0 {
		r.spans[signing], r.sent = at-r.signs, at
	}
}

func (r *reader) enter(at time.Duration, _ string) {
	if !r.loggedIn && r.sent > 0 {
		r.spans[entry] = at - r.sent
	}
	if !r.loggedIn && !strings.HasPrefix(r.method, "gssapi") {
		r.leave(at)
	}
	r.loggedIn = true
}
