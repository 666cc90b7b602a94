package knownhosts

import (
	"strings"

	"sshpace/internal/base/wildcard"
)

// maxPattern is the length from which OpenSSH refuses a name in a list
// (match.c:match_pattern_list has a buffer of 1024), and with it the whole list.
const maxPattern = 1023

// needsMatching reports whether the host field can only be matched name by
// name; all others can be looked up.
func needsMatching(hosts string) bool {
	if strings.ContainsAny(hosts, "*?!") {
		return true
	}
	if len(hosts) < maxPattern {
		return false
	}
	for name := range strings.SplitSeq(hosts, ",") {
		if len(name) >= maxPattern {
			return true
		}
	}
	return false
}

// matchHosts reports whether a comma-separated host field matches a lower-case
// name: one of its patterns must, and none that is negated by "!" may
// (match.c:match_pattern_list).
func matchHosts(name, hosts string) bool {
	matched := false
	for pattern := range strings.SplitSeq(hosts, ",") {
		pattern, negated := strings.CutPrefix(pattern, "!")
		if len(pattern) >= maxPattern {
			return false
		}
		if !wildcard.Match(name, wildcard.Lower(pattern)) {
			continue
		}
		if negated {
			return false
		}
		matched = true
	}
	return matched
}
