package openssh

import (
	"path/filepath"
	"slices"
	"strings"
)

// Cause is why ssh gave up.
type Cause uint8

// The causes.
const (
	Unknown               Cause = iota
	HostKeyChanged              // known_hosts holds another key
	HostKeyRevoked              // the key is marked as revoked
	RevocationsUnreadable       // the list of revoked keys (RevokedHostKeys) cannot be read
	HostKeyWeak                 // the key is too short
	HostKeyUnknown              // strict checking, and no key is known
	Unresolved                  // the name has no address
	Denied                      // no method or key was accepted
	TooManyKeys                 // the server counted more keys than it allows
	BadConfiguration            // of our own side
	NoAlgorithm                 // nothing in common, or a name that ssh does not have
	Prohibited                  // a jump host forwards nothing
	ConnectionRefused
	SessionRefused // logged in, but no session, or no command or subsystem in it
	Unroutable
	TimedOut
	NotSSH      // the peer speaks something else
	Throttled   // sshd says that there are too many (MaxStartups)
	Penalized   // or that this address has to wait (PerSourcePenalties)
	NoVersion   // hung up before it said who it is
	HungUp      // the connection was closed or reset
	Corrupted   // a message was damaged on its way
	SilentAgent // no answer, maybe of an agent: ssh says nothing of it
)

// sentences are parts of what ssh says and their causes. Of many lines the
// earliest sentence here counts: what says more stands first.
var sentences = []struct {
	part  string
	cause Cause
}{
	{"has changed and you have requested strict checking", HostKeyChanged},
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", HostKeyChanged},
	{"is marked as revoked", HostKeyRevoked},
	{"REVOKED HOST KEY", HostKeyRevoked},
	{" revoked by file ", HostKeyRevoked}, // RevokedHostKeys
	{"Error checking host key ", RevocationsUnreadable},
	{"Bad server host key: Invalid key length", HostKeyWeak},
	{"host key is known for", HostKeyUnknown},
	{"Host key verification failed", HostKeyUnknown},
	{"No matching host key fingerprint", HostKeyUnknown}, // in DNS
	{"Could not resolve hostname", Unresolved},
	{"host key mismatch", HostKeyChanged}, // the built-in client
	{"Permission denied (", Denied},       // without the methods it only asks again
	{"unable to authenticate", Denied},    // the built-in client
	{"Too many authentication failures", TooManyKeys},
	{"Bad configuration option", BadConfiguration},
	{"Bad owner or permissions", BadConfiguration},
	{"no matching ", NoAlgorithm},
	{"Unable to negotiate", NoAlgorithm},
	{"no common algorithm", NoAlgorithm}, // the built-in client
	{"Unknown cipher type", NoAlgorithm},
	{"Bad SSH2 ", NoAlgorithm}, // cipher or MAC
	{"administratively prohibited", Prohibited},
	{"Connection refused", ConnectionRefused},
	{"No route to host", Unroutable},
	{"Network is unreachable", Unroutable},
	{"timed out", TimedOut},
	{"not responding", TimedOut},
	{"_exchange_identification: banner line contains invalid characters", NotSSH},
	{"no SSH identification", NotSSH}, // the built-in client
	{"Not allowed at this time", Penalized},
	{"Exceeded MaxStartups", Throttled},
	{"_exchange_identification", NoVersion}, // kex_ or, up to 8.0, ssh_
	{"open failed", SessionRefused},
	{" request failed on channel ", SessionRefused},
	{"Connection reset by", HungUp},
	{"Connection closed by", HungUp},
	{"closed by remote host", HungUp},
	{"Broken pipe", HungUp},
	{"Corrupted MAC", Corrupted},
	{"terminating, ", BadConfiguration},
}

// CauseOf tells why ssh gave up, from its messages, and the message that says it;
// Unknown and "" where none does.
func CauseOf(messages []string) (cause Cause, message string) {
	for _, s := range sentences {
		for _, m := range messages {
			if strings.Contains(m, s.part) {
				return s.cause, m
			}
		}
	}
	return Unknown, ""
}

// TurnedAway tells whether a line before the version line is sshd's own, which has no
// room for the connection (MaxStartups since 8.5, PerSourcePenalties since 9.8).
func TurnedAway(line string) bool {
	cause, _ := CauseOf([]string{line})
	return cause == Throttled || cause == Penalized
}

// BehindProxy are the messages without those that only say that the proxy has ended, if
// there are others: its own, such as those of the ssh to a jump host.
func BehindProxy(messages []string) []string {
	others := slices.DeleteFunc(slices.Clone(messages), func(s string) bool {
		return strings.HasPrefix(s, "kex_exchange_identification: Connection closed by") || strings.HasSuffix(s, " UNKNOWN port 65535") ||
			strings.HasSuffix(s, " UNKNOWN port 65535: Broken pipe")
	})
	if len(others) > 0 {
		return others
	}
	return messages
}

// ProxyReason is why a ProxyCommand ended, from what it wrote to standard error: its last
// line. Of an ssh it is the last line that has a cause, since what else it writes may be
// the greeting of a jump host (Banner).
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

// LastWords is the last of ssh's messages, or the one that says why it gave up where the
// last only says that it did, or that something is wrong with a host key; or why a master
// gave no session (mux.c), on which others follow.
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

// Of what programs write that copy through an ssh, telling are words of lines that say why they ended; farewells
// begin lines that say only that they did, and so does the end of a line.
var (
	telling   = []string{"Address already in use", "No space left on device", "write remote "}
	farewells = []string{"Connection to ", farewell, "Executing:", "sftp>", "lost connection", "rsync error:"}
)

const farewell = "Connection closed"

// Reason is why ssh, or a program that copies through one, ended, from what it wrote to standard error; "" where
// nothing there says it.
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
