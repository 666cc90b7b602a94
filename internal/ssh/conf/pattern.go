package conf

import (
	"strings"

	"sshpace/internal/base/wildcard"
)

// Longest single pattern of a list that ssh accepts (match.c).
const maxSubpattern = 1023

// matchList reports whether s matches a comma-separated pattern list: some
// pattern matches and no pattern behind a ! does (match.c:match_pattern_list).
func matchList(s, list string, fold bool) bool {
	matched, negated := scanList(s, list, fold)
	return matched && !negated
}

func scanList(s, list string, fold bool) (matched, negated bool) {
	for list != "" {
		var pattern string
		pattern, list, _ = strings.Cut(list, ",")
		pattern, not := strings.CutPrefix(pattern, "!")
		if len(pattern) > maxSubpattern {
			return false, false
		}
		if fold {
			pattern = wildcard.Lower(pattern)
		}
		switch {
		case !wildcard.Match(s, pattern):
		case not:
			return matched, true
		default:
			matched = true
		}
	}
	return matched, false
}

// matchHostname is matchList without regard to case (match.c:match_hostname).
func matchHostname(host, list string) bool {
	return matchList(wildcard.Lower(host), list, true)
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
