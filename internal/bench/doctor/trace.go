//go:build linux

package doctor

import (
	"strconv"
	"strings"
	"time"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/bench/login"
	"sshpace/internal/ssh/openssh"
)

// trace is what the log of one login (ssh -vvv) tells. A span that it does not
// tell of is negative.
type trace struct {
	whole, cpu     time.Duration
	tcp, lookup    time.Duration
	gssapi         time.Duration
	vain           []string
	offering       time.Duration // keys that the server did not want
	query          time.Duration // the key that it wanted
	signing, entry time.Duration
	ordering       time.Duration // asking which of the host's keys are known, before the key exchange
	proxy, user    string
	accepted       string // the rest of ssh's line
	address        string
	failed         []attempt
	commands       []command
	spans          map[login.Phase]time.Duration
	negotiation    openssh.Negotiation
	zipped         bool
	loggedIn, jump bool
}

type attempt struct {
	address, why string
	took         time.Duration
}

type command struct {
	text, file string
	line       int
	took       time.Duration
}

// unknown is a span that a log does not tell of.
const unknown = time.Duration(-1)

// read takes the log of a login apart.
func read(l *login.Login) *trace {
	t := &trace{whole: l.Whole, cpu: l.ClientCPU, tcp: unknown, lookup: unknown, gssapi: unknown, query: unknown, signing: unknown, entry: unknown, spans: map[login.Phase]time.Duration{}}
	for _, s := range l.Spans {
		t.spans[s.Phase] = s.NS
	}
	r := reader{trace: t}
	var n openssh.Reader
	for _, line := range l.Lines {
		r.line(line)
		n.Take(line.Event)
	}
	t.negotiation = n.Negotiation()
	return t
}

// reader goes through the lines and knows when what it is in the middle of began.
type reader struct {
	*trace
	resolving, connecting, executing, greeted, trying, offered, signs, sent time.Duration
	method                                                                  string
}

// steps are what the events of a login mean.
var steps = map[openssh.Kind]func(r *reader, at time.Duration, rest string){
	openssh.ProgramEvent:  (*reader).execute,
	openssh.ProgramEnded:  (*reader).executed,
	openssh.Trace:         (*reader).place,
	openssh.Resolving:     func(r *reader, at time.Duration, _ string) { r.resolving = at },
	openssh.Connecting:    (*reader).connect,
	openssh.NotConnected:  (*reader).missed,
	openssh.Connected:     func(r *reader, at time.Duration, _ string) { r.tcp = at - r.connecting },
	openssh.Proxy:         func(r *reader, _ time.Duration, command string) { r.jump, r.proxy = true, command },
	openssh.ServerVersion: func(r *reader, at time.Duration, _ string) { r.greeted = at },
	openssh.KexInitSent: func(r *reader, at time.Duration, _ string) {
		if r.ordering == 0 && r.greeted > 0 { // the first one
			r.ordering = at - r.greeted
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

func (r *reader) line(l login.Line) {
	if take := steps[l.Kind]; take != nil {
		take(r, l.At, l.Text)
	}
}

func (r *reader) place(_ time.Duration, rest string) {
	if m := places().FindStringSubmatch(rest); m != nil && len(r.commands) > 0 {
		last := &r.commands[len(r.commands)-1]
		last.file = m[1]
		last.line, _ = strconv.Atoi(m[2])
	}
}

func (r *reader) execute(at time.Duration, rest string) {
	r.executing = at
	r.commands = append(r.commands, command{text: strings.Trim(rest, "'"), took: unknown})
}

func (r *reader) executed(at time.Duration, _ string) {
	if n := len(r.commands); n > 0 {
		r.commands[n-1].took = at - r.executing
	}
}

// connect reads "NAME [ADDRESS] port N."
func (r *reader) connect(at time.Duration, rest string) {
	if r.lookup == unknown && r.resolving > 0 {
		r.lookup = at - r.resolving
	}
	r.connecting = at
	_, rest, _ = strings.Cut(rest, "[")
	r.address, _, _ = strings.Cut(rest, "]")
}

// missed reads "ADDRESS port N: REASON".
func (r *reader) missed(at time.Duration, rest string) {
	_, why, _ := strings.Cut(rest, ": ")
	r.failed = append(r.failed, attempt{r.address, why, at - r.connecting})
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
		r.gssapi = max(r.gssapi, 0) + at - r.trying
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
		r.vain, r.offering = append(r.vain, r.accepted), r.offering+at-r.offered
	}
}

func (r *reader) accept(at time.Duration, _ string) { r.query, r.offered = at-r.offered, 0 }

// sign begins a signature, by the first of several lines about it.
func (r *reader) sign(at time.Duration, _ string) {
	if r.signs == 0 {
		r.signs = at
	}
}

// send ends it: what was signed goes to the server (RFC 4252 section 7).
func (r *reader) send(at time.Duration, _ string) {
	if r.signs > 0 && r.sent == 0 {
		r.signing, r.sent = at-r.signs, at
	}
}

func (r *reader) enter(at time.Duration, _ string) {
	if !r.loggedIn && r.sent > 0 {
		r.entry = at - r.sent
	}
	if !r.loggedIn && !strings.HasPrefix(r.method, "gssapi") {
		r.leave(at)
	}
	r.loggedIn = true
}
