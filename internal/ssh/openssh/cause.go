package openssh

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/ssh/knownhosts/check"
)

// Cause is the reason why ssh gave up.
type Cause uint8

// The causes, in the order of importance: of several messages the first cause counts.
const (
	Unknown Cause = iota
	HostKeyChanged
	HostKeyRevoked
	RevocationsUnreadable
	HostKeyWeak
	HostKeyUnknown
	Unresolved
	Denied
	TooManyKeys
	Expired
	NoAlgorithm
	BadConfiguration
	Prohibited
	ConnectionRefused
	Unroutable
	TimedOut
	NotSSH
	Penalized
	Throttled
	NoVersion
	SessionRefused
	HungUp
	Corrupted
	SilentAgent
)

// causes describes each; session.ClassOf translates it for a run.
var causes = [...]struct {
	sentences []string       // parts of ssh's messages
	outcome   record.Outcome // of a trial
	advice    string         // the remedy, for every command; "" where it depends on circumstances
	closer    bool           // the advice is better than the hint for the outcome in hints
	try       string         // appended to the advice; %s is how ssh reaches the host
}{
	Unknown: {outcome: record.Broken},
	HostKeyChanged: { // known_hosts holds another key
		sentences: []string{
			"has changed and you have requested strict checking", "REMOTE HOST IDENTIFICATION HAS CHANGED",
			"host key mismatch", // the built-in client
		},
		outcome: record.HostKey, advice: check.ChangedHint,
	},
	HostKeyRevoked: {
		sentences: []string{"is marked as revoked", "REVOKED HOST KEY", " revoked by file "}, // RevokedHostKeys
		outcome:   record.HostKey, advice: check.RevokedHint, closer: true,
	},
	RevocationsUnreadable: { // the list of revoked keys
		sentences: []string{"Error checking host key "},
		outcome:   record.HostKey, advice: "the file of RevokedHostKeys cannot be read: no key is accepted until it can", closer: true,
	},
	HostKeyWeak: { // it is too short
		sentences: []string{"Bad server host key: Invalid key length"},
		outcome:   record.HostKey, advice: "give the server an Ed25519 host key or a longer one", closer: true,
	},
	HostKeyUnknown: { // strict checking, and no key is known
		sentences: []string{
			"host key is known for", "Host key verification failed",
			"No matching host key fingerprint", // in DNS
		},
		outcome: record.HostKey, advice: check.UnknownHint,
	},
	Unresolved: { // the name has no address
		sentences: []string{"Could not resolve hostname"},
		outcome:   record.Unresolved, advice: "check the spelling",
	},
	Denied: { // no method or key was accepted
		sentences: []string{
			"Permission denied (",    // without the methods it only asks again
			"unable to authenticate", // the built-in client
		},
		outcome: record.Denied,
	},
	TooManyKeys: { // the server counted more than it allows
		sentences: []string{"Too many authentication failures"},
		outcome:   record.Denied, advice: "more keys are offered than the server allows; name one with -i and -o IdentitiesOnly=yes",
		try: "ssh -o IdentitiesOnly=yes -i FILE %s true",
	},
	Expired: { // the account's password, which must be changed before the server runs anything
		sentences: []string{"Password change required but no TTY available"},
		outcome:   record.Denied, advice: "the account's password has expired",
		try: "log in and change it with ssh %s",
	},
	NoAlgorithm: { // nothing in common, or a name that ssh does not have
		sentences: []string{
			"no matching ", "Unable to negotiate",
			"no common algorithm", // the built-in client
			"Unknown cipher type",
			"Bad SSH2 ", // cipher or MAC
		},
		outcome: record.Mismatched, advice: "sshpace config shows what is offered, of which the server has none",
	},
	BadConfiguration: { // of our own side
		sentences: []string{"Bad configuration option", "Bad owner or permissions", " bad configuration options"},
		outcome:   record.Broken,
	},
	Prohibited: { // a jump host forwards nothing
		sentences: []string{"administratively prohibited"},
		outcome:   record.Refused, advice: "the jump host forbids forwarding there (AllowTcpForwarding, PermitOpen)", closer: true,
	},
	ConnectionRefused: {
		sentences: []string{"Connection refused"},
		outcome:   record.Refused, try: "check that an sshd listens on that port: ssh -v %s",
	},
	Unroutable: {
		sentences: []string{"No route to host", "Network is unreachable"},
		outcome:   record.Refused, try: "check the address and the network, such as a VPN; there is no route: ssh -v %s",
	},
	TimedOut: {
		sentences: []string{"timed out", "not responding"},
		outcome:   record.TimedOut, advice: "--connect-timeout allows more time",
	},
	NotSSH: { // the peer speaks something else
		sentences: []string{
			"_exchange_identification: banner line contains invalid characters",
			"no SSH identification", // the built-in client
		},
		outcome: record.Refused, advice: "check the port; this is not an SSH server", closer: true,
	},
	Penalized: { // this address has to wait (PerSourcePenalties of sshd)
		sentences: []string{"Not allowed at this time"},
		outcome:   record.Refused, advice: manyLogins,
	},
	Throttled: { // or that there are too many (MaxStartups)
		sentences: []string{"Exceeded MaxStartups"},
		outcome:   record.Refused, advice: manyLogins,
	},
	NoVersion: { // the server closed the connection before its version line, see Failure
		sentences: []string{"_exchange_identification"}, // kex_ or, up to 8.0, ssh_
		outcome:   record.Refused, advice: manyLogins,
	},
	SessionRefused: { // logged in, but no session, or no command or subsystem in it
		sentences: []string{"open failed", " request failed on channel "},
		outcome:   record.Broken, advice: "see MaxSessions and the account's restrictions on the server",
	},
	HungUp: { // the connection was closed or reset
		sentences: []string{"Connection reset by", "Connection closed by", "closed by remote host", "Broken pipe"},
		outcome:   record.Broken,
	},
	Corrupted: { // a message was damaged in transit
		sentences: []string{"Corrupted MAC"},
		outcome:   record.Broken,
	},
	SilentAgent: { // no answer, maybe from an agent: ssh does not mention it
		outcome: record.TimedOut, try: "check that your agent answers (ssh-add -l) and the host is up: ssh -v %s",
	},
}

// manyLogins is the advice for servers that turn connections away.
const manyLogins = "the server may limit logins (MaxStartups, PerSourcePenalties); try a smaller -f"

// Advice returns the remedy for a failure of this cause, "" where it depends on circumstances.
func (c Cause) Advice() string { return causes[c].advice }

// OutcomeOf translates a cause for a trial.
func OutcomeOf(c Cause) record.Outcome { return causes[c].outcome }

// CauseOf returns why ssh gave up, from its messages, and the message with the reason; Unknown and
// "" where there is none.
func CauseOf(messages []string) (cause Cause, message string) {
	for c, known := range causes {
		for _, sentence := range known.sentences {
			for _, m := range messages {
				if strings.Contains(m, sentence) {
					return Cause(c), m
				}
			}
		}
	}
	return Unknown, ""
}

// HasExpired reports whether the server says, on standard error in place of a command, that the
// account's password has expired.
func HasExpired(said []string) bool {
	cause, _ := CauseOf(said)
	return cause == Expired
}

// TurnedAway reports whether a line before the version line comes from an sshd that has no room for
// the connection (MaxStartups since 8.5, PerSourcePenalties since 9.8).
func TurnedAway(line string) bool {
	cause, _ := CauseOf([]string{line})
	return cause == Throttled || cause == Penalized
}

// NotForwarded returns why a jump host does not connect to a host, by its words. They only describe
// errors of a network.
func NotForwarded(said string) Cause {
	switch cause, _ := CauseOf([]string{said}); cause {
	case Prohibited, Unroutable, TimedOut, HungUp:
		return cause
	}
	return ConnectionRefused
}

// BehindProxy returns the messages without those that only say that the proxy has ended, if there
// are others: the proxy's own, such as those of the ssh to a jump host.
func BehindProxy(messages []string) []string {
	others := slices.DeleteFunc(slices.Clone(messages), func(s string) bool {
		return strings.HasPrefix(s, "kex_exchange_identification: Connection closed by") || strings.HasSuffix(s, " UNKNOWN port 65535") ||
			strings.HasSuffix(s, " UNKNOWN port 65535: Broken pipe") || strings.HasPrefix(s, "Killed by signal ")
	})
	if len(others) > 0 {
		return others
	}
	return messages
}

// ProxyReason returns why a ProxyCommand ended, from its standard error: the last line. For an ssh
// it is the last line with a cause, since other lines may be the greeting of a jump host (Banner).
func ProxyReason(command string, said []string) string {
	program, _, _ := strings.Cut(strings.TrimPrefix(command, "exec "), " ")
	greets := filepath.Base(strings.Trim(program, `'"`)) == "ssh"
	for _, line := range slices.Backward(said) {
		if cause, _ := CauseOf([]string{line}); cause != Unknown || !greets {
			return line
		}
	}
	return ""
}

// LastWords returns the last of ssh's messages, or the one with the reason if the last only says
// that ssh ended, or that something is wrong with a host key; or the reason why a master gave no
// session (mux.c), which others follow.
func LastWords(messages []string) string {
	last := ""
	for _, m := range messages {
		if strings.HasPrefix(m, "mux_client_request_session: ") {
			return m
		}
		if m = strings.TrimSpace(m); m != "" {
			last = m
		}
	}
	if cause, _ := CauseOf([]string{last}); cause == Unknown || last == "Host key verification failed." {
		if _, why := CauseOf(messages); why != "" {
			return strings.TrimSpace(why)
		}
	}
	return last
}

// For the output of programs that copy through an ssh: telling are words of lines with a reason;
// farewells begin lines that only say that the program ended, and so does the end of a line.
var (
	telling   = []string{"Address already in use", "No space left on device", "write remote "}
	farewells = []string{"Connection to ", farewell, "Executing:", "sftp>", "lost connection", "rsync error:"}
)

const farewell = "Connection closed"

// Reason returns why ssh, or a program that copies through one, ended, from its standard error; ""
// where it contains no reason.
func Reason(stderr string) string {
	has := func(line string, list []string, where func(line, words string) bool) bool {
		return slices.ContainsFunc(list, func(words string) bool { return where(line, words) })
	}
	var messages []string
	for line := range strings.Lines(stderr) {
		e := ReadEvent(line)
		switch {
		case e.Kind != Message || has(e.Text, farewells, strings.HasPrefix):
		case len(messages) > 0 && strings.HasSuffix(e.Text, farewell):
		case has(e.Text, telling, strings.Contains):
			return e.Text
		default:
			messages = append(messages, e.Text)
		}
	}
	return LastWords(messages)
}

// hints suggest remedies for hosts that cannot be measured. %s is how ssh reaches it.
var hints = map[record.Outcome]string{
	record.HostKey:    "log in once with ssh %s and compare the fingerprint",
	record.Denied:     "sshpace asks for no password: make ssh -o BatchMode=yes %s true work first (agent or key file)",
	record.Refused:    "check that an sshd listens there; if it limits connections (MaxStartups, PerSourcePenalties), wait: ssh -v %s",
	record.TimedOut:   "check that the host is up, or allow more time with --connect-timeout: ssh -v %s",
	record.Unresolved: "check the name, or give it a HostName in your ssh_config: ssh -G %s",
	record.Broken:     "see what ssh says: ssh -v %s true",
	record.Mismatched: "see what ssh says: ssh -v %s true",
}

// Hint suggests a remedy for an ssh that failed.
func (p Program) Hint(ctx context.Context, d Destination, f Failed) string {
	known := causes[f.Cause]
	words := cmp.Or(hints[f.Outcome], hints[record.Broken])
	switch {
	case known.try != "":
		words = strings.TrimPrefix(known.advice+": "+known.try, ": ")
	case known.closer:
		return known.advice
	case f.Outcome == record.HostKey && f.KeyFile != "":
		return p.changedKeyHint(ctx, d, f.KeyFile)
	}
	return fmt.Sprintf(words, shell.Line(d.Typed()...))
}

// Explain returns a failure with the host's name, and its remedy.
func (p Program) Explain(d Destination, f Failed) error {
	return fault.WithHint(fmt.Errorf("%s: %s", cmp.Or(d.Label, d.Host), f.Said), p.Hint(context.Background(), d, f))
}

// changedKeyHint suggests a remedy for a host whose key differs from the one in a known_hosts file.
func (p Program) changedKeyHint(ctx context.Context, d Destination, file string) string {
	name := d.Host
	if endpoint, err := p.Endpoint(ctx, d); err == nil {
		name = endpoint.KnownAs
	}
	return check.Forget(name, file)
}
