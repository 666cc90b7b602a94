package openssh

import (
	"cmp"
	"context"
	"fmt"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/ssh/knownhosts/check"
)

// manyLogins is said of servers that turn connections away.
const manyLogins = "the server may limit logins (MaxStartups, PerSourcePenalties); try a smaller -f"

// advice is what to do about causes, whoever has met them.
var advice = map[Cause]string{
	HostKeyChanged:        check.ChangedHint,
	HostKeyRevoked:        check.RevokedHint,
	RevocationsUnreadable: "the file of RevokedHostKeys cannot be read: no key is accepted until it can",
	HostKeyWeak:           "give the server an Ed25519 host key or a longer one",
	HostKeyUnknown:        check.UnknownHint,
	Unresolved:            "check the spelling",
	TooManyKeys:           "more keys are offered than the server allows; name one with -i and -o IdentitiesOnly=yes",
	NoAlgorithm:           "sshpace config shows what is offered, of which the server has none",
	Prohibited:            "the jump host forbids forwarding there (AllowTcpForwarding, PermitOpen)",
	SessionRefused:        "see MaxSessions and the account's restrictions on the server",
	NotSSH:                "check the port; this is no SSH server",
	Throttled:             manyLogins,
	Penalized:             manyLogins,
	NoVersion:             manyLogins,
	TimedOut:              "--connect-timeout allows more time",
}

// Advice says what to do about a failure of this cause, "" where only its circumstances tell.
func (c Cause) Advice() string { return advice[c] }

// hints say what to do about a host that cannot be measured. %s is how ssh
// reaches it.
var hints = map[record.Outcome]string{
	record.HostKey:    "log in once with ssh %s and compare the fingerprint",
	record.Denied:     "sshpace asks for no password: make ssh -o BatchMode=yes %s true work first (agent or key file)",
	record.Refused:    "check that an sshd listens there; if it limits connections (MaxStartups, PerSourcePenalties), wait: ssh -v %s",
	record.TimedOut:   "check that the host is up, or allow more time with --connect-timeout: ssh -v %s",
	record.Unresolved: "check the name, or give it a HostName in your ssh_config: ssh -G %s",
	record.Broken:     "see what ssh says: ssh -v %s true",
	record.Mismatched: "see what ssh says: ssh -v %s true",
}

// closer are hints for causes that an outcome does not tell apart.
var closer = map[Cause]string{
	ConnectionRefused: "check that an sshd listens on that port: ssh -v %s",
	Unroutable:        "check the address and the network, such as a VPN; there is no route: ssh -v %s",
	SilentAgent:       "check that your agent answers (ssh-add -l) and the host is up: ssh -v %s",
	TooManyKeys:       "more keys are offered than the server allows; name the right one: ssh -o IdentitiesOnly=yes -i FILE %s true",
}

// Hint says what to do about an ssh that failed.
func (p Program) Hint(ctx context.Context, d Destination, f Failed) string {
	words := cmp.Or(closer[f.Cause], hints[f.Outcome], hints[record.Broken])
	switch {
	case f.Cause == NotSSH, f.Cause == HostKeyRevoked:
		return f.Cause.Advice()
	case f.Outcome == record.HostKey && f.KeyFile != "":
		return p.changedKeyHint(ctx, d, f.KeyFile)
	}
	return fmt.Sprintf(words, shell.Line(d.Typed()...))
}

// Explain is a failure with the host's name, and what to do about it.
func (p Program) Explain(d Destination, f Failed) error {
	return fault.WithHint(fmt.Errorf("%s: %s", cmp.Or(d.Label, d.Host), f.Said), p.Hint(context.Background(), d, f))
}

// changedKeyHint says what to do about a host whose key is not the one in a
// known_hosts file.
func (p Program) changedKeyHint(ctx context.Context, d Destination, file string) string {
	name := d.Host
	if endpoint, err := p.Endpoint(ctx, d); err == nil {
		name = endpoint.KnownAs
	}
	return check.Forget(name, file)
}
