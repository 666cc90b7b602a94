package conf

import (
	"strings"

	"sshpace/internal/base/wildcard"
)

// matchHostname is wildcard.MatchList without regard to case (match.c:match_hostname).
func matchHostname(host, list string) bool {
	return wildcard.MatchListFold(wildcard.Lower(host), list)
}

// hostPattern is one argument of a Host line.
type hostPattern struct {
	text    string
	negated bool
}

func parseHostPattern(arg string) hostPattern {
	text, negated := strings.CutPrefix(arg, "!")
	return hostPattern{text, negated}
}

// plain reports whether the pattern is a name without wildcards.
func (p hostPattern) plain() bool {
	return !p.negated && !strings.ContainsAny(p.text, "*?")
}

// matchHost applies a Host line: a negated match rules the block out.
func matchHost(host string, patterns []hostPattern) bool {
	active := false
	for _, p := range patterns {
		if !wildcard.Match(host, p.text) {
			continue
		}
		if p.negated {
			return false
		}
		active = true
	}
	return active
}
