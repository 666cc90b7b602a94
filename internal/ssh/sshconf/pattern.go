package sshconf

import "strings"

// matchPattern reports whether s matches a pattern in which * stands for any
// run of characters and ? for one (match.c:match_pattern, ssh_config(5)
// PATTERNS). It takes linear time in practice: only the last * backtracks.
func matchPattern(s, pattern string) bool {
	star, mark := -1, 0
	i, j := 0, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '*':
			star, mark = j, i
			j++
		case j < len(pattern) && (pattern[j] == '?' || pattern[j] == s[i]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[j:], "*") == ""
}

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
			pattern = lower(pattern)
		}
		switch {
		case !matchPattern(s, pattern):
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
	return matchList(lower(host), list, true)
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
		if !matchPattern(host, p.text) {
			continue
		}
		if p.negated {
			return false
		}
		active = true
	}
	return active
}
