package knownhosts

import (
	"strings"

	"sshpace/internal/base/wildcard"
)

// needsMatching reports whether the host field can only be matched name by name; all others can be
// looked up.
func needsMatching(hosts string) bool {
	if strings.ContainsAny(hosts, "*?!") {
		return true
	}
	if len(hosts) < wildcard.TooLong {
		return false
	}
	for name := range strings.SplitSeq(hosts, ",") {
		if len(name) >= wildcard.TooLong {
			return true
		}
	}
	return false
}
