package legacylog

import (
	"strings"

	"sshpace/internal/record"
)

// failures are what ssh says where there is no session, or none any more, by a
// part of the line (OpenSSH ssh.c, sshconnect.c, sshconnect2.c, packet.c). The
// first that a line holds counts.
var failures = []struct {
	phrase  string
	outcome record.Outcome
}{
	{"no matching", record.Refused},
	{"Unable to negotiate", record.Refused},
	{"Unknown cipher type", record.Refused},
	{"Bad SSH2", record.Refused},
	{"Bad cipher", record.Refused},
	{"Unsupported", record.Refused},
	{"Connection refused", record.Refused},
	{"_exchange_identification: ", record.Refused},
	{"Permission denied (", record.Denied}, // without the methods it only asks again
	{"Too many authentication failures", record.Denied},
	{"Host key verification failed", record.HostKey},
	{"Could not resolve hostname", record.Unresolved},
	{"Connection timed out", record.TimedOut},
	{"Connection closed", record.Broken},
	{"Connection reset", record.Broken},
	{"closed by remote host", record.Broken},
	{"Corrupted MAC", record.Broken},
	{"Disconnect", record.Broken},
	{"Write failed: ", record.Broken},
	{"client_loop: ", record.Broken},
	{"ssh: ", record.Broken},
}

// failureOf is how a run ended of which ssh says this; ok is false where the
// line is no failure.
func failureOf(line string) (outcome record.Outcome, ok bool) {
	if strings.HasPrefix(line, "debug") {
		return "", false
	}
	for _, f := range failures {
		if strings.Contains(line, f.phrase) {
			return f.outcome, true
		}
	}
	return "", false
}
