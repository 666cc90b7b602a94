package openssh

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/ssh/knownhosts/check"
)

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
