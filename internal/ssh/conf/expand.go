package conf

import (
	"crypto/sha1" // the hash that ssh defines for %C, not a matter of security
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// tokenFunc returns the text for %c. ok is false for unknown tokens.
type tokenFunc func(c byte) (text string, ok bool)

// expand replaces %-tokens when tokens is set and ${NAME} when env is set
// (misc.c:vdollar_percent_expand). A variable that is not set is an error.
func expand(s string, tokens tokenFunc, env func(string) (string, bool)) (string, error) {
	if strings.IndexByte(s, '%') < 0 && !strings.Contains(s, "${") {
		return s, nil
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		text, used := s[i:i+1], 1
		var err error
		switch {
		case env != nil && strings.HasPrefix(s[i:], "${"):
			text, used, err = expandEnv(s[i:], env)
		case tokens != nil && s[i] == '%':
			text, used, err = expandToken(s[i:], tokens)
		}
		if err != nil {
			return "", err
		}
		out.WriteString(text)
		i += used - 1
	}
	return out.String(), nil
}

func expandEnv(s string, env func(string) (string, bool)) (text string, used int, err error) {
	name, _, closed := strings.Cut(s[2:], "}")
	if !closed || name == "" {
		return "", 0, fmt.Errorf("invalid environment expansion in %q", s)
	}
	text, ok := env(name)
	if !ok {
		return "", 0, fmt.Errorf("environment variable %s has no value", name)
	}
	return text, len(name) + len("${}"), nil
}

func expandToken(s string, tokens tokenFunc) (text string, used int, err error) {
	if len(s) < 2 {
		return "", 0, fmt.Errorf("%q ends in a single %%", s)
	}
	if s[1] == '%' {
		return "%", 2, nil
	}
	text, ok := tokens(s[1])
	if !ok {
		return "", 0, fmt.Errorf("unknown token %q", s[:2])
	}
	return text, 2, nil
}

// connection holds the values of tokens: one host as far as it is known.
type connection struct {
	system   *System
	version  Version
	host     string // %h
	argument string // %n
	alias    string // %k
	port     int    // %p
	user     string // %r
	jump     string // %j
}

// token is the tokenFunc of most keywords (ssh_config(5) TOKENS).
func (c *connection) token(t byte) (text string, ok bool) {
	switch t {
	case 'C':
		return c.hash(), true
	case 'L':
		short, _, _ := strings.Cut(c.system.Hostname, ".")
		return short, true
	case 'd':
		return c.system.Home, true
	case 'i':
		return strconv.Itoa(c.system.UID), true
	case 'j':
		return c.jump, c.version.AtLeast(jumpToken)
	case 'l':
		return c.system.Hostname, true
	case 'u':
		return c.system.User, true
	}
	return c.proxyToken(t)
}

// userToken is the tokenFunc of User: tokens that depend on the user are unknown.
func (c *connection) userToken(t byte) (text string, ok bool) {
	if t == 'C' || t == 'r' {
		return "", false
	}
	return c.token(t)
}

func (c *connection) proxyToken(t byte) (text string, ok bool) {
	switch t {
	case 'h':
		return c.host, true
	case 'k':
		return c.alias, true
	case 'n':
		return c.argument, true
	case 'p':
		return strconv.Itoa(c.port), true
	case 'r':
		return c.user, true
	}
	return "", false
}

// with is the tokenFunc of a keyword that has tokens of its own.
func (c *connection) with(own tokenFunc) tokenFunc {
	return func(t byte) (text string, ok bool) {
		if text, ok = own(t); ok {
			return text, ok
		}
		return c.token(t)
	}
}

// hash is %C: SHA-1 over %l%h%p%r, and %j where ssh has it.
func (c *connection) hash() string {
	text := c.system.Hostname + c.host + strconv.Itoa(c.port) + c.user
	if c.version.AtLeast(jumpToken) {
		text += c.jump
	}
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// tokensAboutHost are those whose text differs from host to host.
const tokensAboutHost = "Chjknpr"

// mentionsJump reports whether s holds a token that includes the jump host.
func mentionsJump(s string) bool {
	for i := 0; i+1 < len(s); i++ {
		if s[i] != '%' {
			continue
		}
		if i++; s[i] == 'C' || s[i] == 'j' {
			return true
		}
	}
	return false
}

// tilde replaces a leading ~ or ~user by the home directory.
func (s *System) tilde(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~")
	if !ok {
		return path, nil
	}
	name, rest, _ := strings.Cut(rest, "/")
	home := s.Home
	if name != "" {
		if s.HomeOf != nil {
			home, ok = s.HomeOf(name)
		}
		if s.HomeOf == nil || !ok {
			return "", fmt.Errorf("no such user: %q", name)
		}
	}
	return strings.TrimSuffix(home, "/") + "/" + strings.TrimLeft(rest, "/"), nil
}

// path expands everything that file keywords may contain.
func (c *connection) path(s string) (string, error) {
	s, err := c.system.tilde(s)
	if err != nil {
		return "", err
	}
	return c.text(s)
}

// text expands tokens and variables.
func (c *connection) text(s string) (string, error) { return expand(s, c.token, c.system.Getenv) }
