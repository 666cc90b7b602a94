package wildcard

import (
	"fmt"
	"regexp"
	"strings"
)

// Paths are patterns for the names of files in a tree, as --exclude of rsync(1) reads them: * and ?
// stand for text without a slash, ** for any text, [a-z] and [!a-z] for one character. A pattern
// with a slash inside is compared with the end of the whole name, with one in front with all of it,
// any other with the last part of the name; / at the end stands for directories alone.
type Paths []pathPattern

type pathPattern struct {
	names       *regexp.Regexp
	directories bool // only
}

// NewPaths reads patterns.
func NewPaths(patterns []string) (Paths, error) {
	var list Paths
	for _, pattern := range patterns {
		text, directories := strings.CutSuffix(pattern, "/")
		text, anchored := strings.CutPrefix(text, "/")
		names, err := regexp.Compile(pathRegexp(text, anchored))
		switch {
		case strings.Trim(text, "/") == "":
			return nil, fmt.Errorf("the pattern %q has no name", pattern)
		case err != nil:
			return nil, fmt.Errorf("the pattern %q cannot be read: [ begins a set such as [a-z], and \\[ is the character", pattern)
		}
		list = append(list, pathPattern{names, directories})
	}
	return list, nil
}

// Match reports whether one of the patterns stands for a name, which has no slash in front.
func (p Paths) Match(name string, directory bool) bool {
	for _, pattern := range p {
		if (directory || !pattern.directories) && pattern.names.MatchString(name) {
			return true
		}
	}
	return false
}

// pathTokens are the parts of a pattern: wildcards, a set, a character after \, and others.
const pathTokens = `(?s)\*+|\?|\\.|\[[!^]?\]?(?:\[:[a-z]+:\]|\\.|[^\]\\])*\]|.`

// pathRegexp returns a pattern as a regular expression. In a pattern with wildcards \ makes the
// next character an ordinary one; in others it is ordinary itself.
func pathRegexp(pattern string, anchored bool) string {
	begin := "(?s)(?:^|/)"
	if anchored {
		begin = "(?s)^"
	}
	if !strings.ContainsAny(pattern, "*?[") {
		return begin + regexp.QuoteMeta(pattern) + "$"
	}
	return begin + regexp.MustCompile(pathTokens).ReplaceAllStringFunc(pattern, func(token string) string {
		switch {
		case token == "*":
			return "[^/]*"
		case token[0] == '*':
			return ".*"
		case token == "?":
			return "[^/]"
		case token[0] == '[' && len(token) > 1:
			return setRegexp(token[1 : len(token)-1])
		case token[0] == '\\' && len(token) > 1:
			return regexp.QuoteMeta(token[1:])
		case token == "[":
			return token // which is an error
		}
		return regexp.QuoteMeta(token)
	}) + "$"
}

// setRegexp returns the set of characters of a pattern, never with a slash if it is negated.
func setRegexp(set string) string {
	negated := strings.IndexAny(set, "!^") == 0
	if negated {
		set = set[1:]
	}
	if strings.IndexAny(set, "]-") == 0 {
		set = `\` + set
	}
	if negated {
		return "[^/" + set + "]"
	}
	return "[" + set + "]"
}
