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
	var text strings.Builder
	for _, line := range l.Lines {
		r.line(line)
		text.WriteString(line.Text + "\n")
	}
	t.negotiation = openssh.ParseVerbose(text.String())
	return t
}

// reader goes through the lines and knows when what it is in the middle of began.
type reader struct {
	*trace
	resolving, connecting, executing, greeted, trying, offered, signs, sent time.Duration
	method                                                                  string
}

// steps are beginnings of lines (ssh.c, sshconnect.c, sshconnect2.c, readconf.c of
// OpenSSH 8 to 10) and what each means.
var steps = []struct {
	prefix string
	take   func(r *reader, at time.Duration, rest string)
}{
	{"debug1: Executing command: ", (*reader).execute},
	{"debug3: command returned status ", (*reader).executed},
	{"debug2: resolving ", func(r *reader, at time.Duration, _ string) { r.resolving = at }},
	{"debug1: Connecting to ", (*reader).connect},
	{"debug1: connect to address ", (*reader).missed},
	{"debug1: Connection established", func(r *reader, at time.Duration, _ string) { r.tcp = at - r.connecting }},
	{"debug1: Executing proxy ", func(r *reader, _ time.Duration, rest string) {
		r.jump = true
		_, rest, _ = strings.Cut(rest, "command: ")
		r.proxy = strings.TrimPrefix(rest, "exec ")
	}},
	{"debug1: Remote protocol version ", func(r *reader, at time.Duration, _ string) { r.greeted = at }},
	{"debug1: SSH2_MSG_KEXINIT sent", func(r *reader, at time.Duration, _ string) {
		if r.ordering == 0 && r.greeted > 0 { // the first one
			r.ordering = at - r.greeted
		}
	}},
	{"debug1: Authenticating to ", func(r *reader, _ time.Duration, rest string) {
		_, rest, _ = strings.Cut(rest, " as '")
		r.user = strings.TrimSuffix(rest, "'")
	}},
	{"debug1: Next authentication method: ", (*reader).next},
	{"debug1: Offering public key: ", (*reader).offer},
	{"debug1: Server accepts key: ", (*reader).accept},
	{"debug3: sign_and_send_pubkey: ", (*reader).sign},
	{"debug3: send packet: type 50", (*reader).send},
	{"Authenticated to ", (*reader).enter},
	{"debug1: Authentication succeeded", (*reader).enter},
}

// places are the lines that say where a command of Match exec stands, once it has
// ended.
var places = wildcard.Regexp(`^debug3: (.+) line (\d+): (?:not |no )?match(?:ed)? '!?exec `)

func (r *reader) line(l login.Line) {
	for _, s := range steps {
		if rest, ok := strings.CutPrefix(l.Text, s.prefix); ok {
			s.take(r, l.At, rest)
			return
		}
	}
	if m := places().FindStringSubmatch(l.Text); m != nil && len(r.commands) > 0 {
		last := &r.commands[len(r.commands)-1]
		last.file = m[1]
		last.line, _ = strconv.Atoi(m[2])
	}
	if strings.HasPrefix(l.Text, "debug1: kex: client->server ") {
		r.zipped = strings.Contains(l.Text, " zlib")
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
