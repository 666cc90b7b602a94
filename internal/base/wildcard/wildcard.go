// Package wildcard compares names with patterns of * and ?, and compiles regular expressions at
// their first use: a login that waits for that is a slow one. It knows nothing about the things
// that are named.
package wildcard

import (
	"regexp"
	"strings"
	"sync"
)

// Match reports whether the whole name matches a pattern, in which * stands for any text and ? for
// one byte (ssh_config(5) PATTERNS, match.c:match_pattern). It goes back to the last star only,
// which is enough, and so takes at most len(name)*len(pattern) steps; the recursion of match.c
// takes exponential time on patterns made for it.
func Match(name, pattern string) bool {
	n, p, star, mark := 0, 0, -1, 0
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			n++
			p++
		case star >= 0:
			mark++
			n, p = mark, star+1
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

// TooLong is the length from which OpenSSH refuses a pattern in a list, and with it the whole list
// (match.c:match_pattern_list has a buffer of 1024).
const TooLong = 1023

// MatchList reports whether a name matches a comma-separated list of patterns: one of them must,
// and none that is negated by "!" may (match.c:match_pattern_list).
func MatchList(name, list string) bool {
	matched := false
	for list != "" {
		var pattern string
		pattern, list, _ = strings.Cut(list, ",")
		pattern, negated := strings.CutPrefix(pattern, "!")
		switch {
		case len(pattern) >= TooLong:
			return false
		case !Match(name, pattern):
		case negated:
			return false
		default:
			matched = true
		}
	}
	return matched
}

// MatchListFold is MatchList for a name in lower case, whatever the case of the patterns.
func MatchListFold(name, list string) bool { return MatchList(name, Lower(list)) }

// Lower makes ASCII letters lower-case and leaves all other bytes alone, as tolower(3) does in
// OpenSSH. It copies only when it must.
func Lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' {
			return lowerCopy(s)
		}
	}
	return s
}

func lowerCopy(s string) string {
	out := []byte(s)
	for i, c := range out {
		if 'A' <= c && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// Regexp returns a regular expression for a package's variable, compiled at its first use. An
// invalid one panics then.
func Regexp(text string) func() *regexp.Regexp {
	return (&lazy{text: text}).get // half of what sync.OnceValue would allocate before main
}

type lazy struct {
	text     string
	once     sync.Once
	compiled *regexp.Regexp
}

func (l *lazy) get() *regexp.Regexp {
	l.once.Do(func() { l.compiled = regexp.MustCompile(l.text) })
	return l.compiled
}
