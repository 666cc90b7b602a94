package imports

import (
	"strings"

	"sshpace/internal/bench"
)

// failures are what ssh says where there is no session, or none any more, by a
// part of the line (OpenSSH ssh.c, sshconnect.c, sshconnect2.c, packet.c). The
// first that a line holds counts.
var failures = []struct {
	phrase  string
	outcome bench.Outcome
}{
	{"no matching", bench.Refused},
	{"Unable to negotiate", bench.Refused},
	{"Unknown cipher type", bench.Refused},
	{"Bad SSH2", bench.Refused},
	{"Bad cipher", bench.Refused},
	{"Unsupported", bench.Refused},
	{"Connection refused", bench.Refused},
	{"_exchange_identification: ", bench.Refused},
	{"Permission denied (", bench.Denied}, // without the methods it only asks again
	{"Too many authentication failures", bench.Denied},
	{"Host key verification failed", bench.HostKey},
	{"Could not resolve hostname", bench.Unresolved},
	{"Connection timed out", bench.TimedOut},
	{"Connection closed", bench.Broken},
	{"Connection reset", bench.Broken},
	{"closed by remote host", bench.Broken},
	{"Corrupted MAC", bench.Broken},
	{"Disconnect", bench.Broken},
	{"Write failed: ", bench.Broken},
	{"client_loop: ", bench.Broken},
	{"ssh: ", bench.Broken},
}

// failureOf is how a run ended of which ssh says this; ok is false where the
// line is no failure.
func failureOf(line string) (outcome bench.Outcome, ok bool) {
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
