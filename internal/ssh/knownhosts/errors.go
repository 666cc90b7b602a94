package knownhosts

import (
	"fmt"
	"strings"
)

// Known is a key that a file holds, named as people can compare it.
type Known struct {
	File        string
	Line        int
	Type        string // such as "ssh-ed25519"
	Fingerprint string // "SHA256:..."
}

func knownOf(e Entry) Known {
	keyType, print, _ := strings.Cut(e.Fingerprint(), " ")
	return Known{File: e.File, Line: e.Line, Type: keyType, Fingerprint: print}
}

// String is "file:line (type fingerprint)".
func (k Known) String() string {
	return fmt.Sprintf("%s:%d (%s %s)", k.File, k.Line, k.Type, k.Fingerprint)
}

// Unknown is the error of Check for a name of which the files hold no key.
type Unknown struct {
	Name   string   // as it would stand in a file
	Remote string   // the address that was reached; may be empty
	New    string   // type and fingerprint of the key that was offered
	Files  []string // what was searched
	Reason string   // why a certificate, or a host with only a CA, was not accepted; often empty
	CA     bool     // a @cert-authority line matches the name: only a valid certificate will do
	Err    error    // a file that could not be read; nil if all could
}

// What says what happened, in one sentence without an end.
func (e *Unknown) What() string {
	what := fmt.Sprintf("host key of %s is unknown: it offered %s, and %s does not know the name",
		at(e.Name, e.Remote), e.New, strings.Join(e.Files, ", "))
	if e.Reason != "" {
		what = fmt.Sprintf("host key of %s is not accepted: it offered %s, but %s", at(e.Name, e.Remote), e.New, e.Reason)
	}
	if e.Err != nil {
		what += fmt.Sprintf(" (%v)", e.Err)
	}
	return what
}

// Hint says what to do about it.
func (e *Unknown) Hint() string {
	if e.CA {
		return "give the server a valid host certificate of that authority (ssh-keygen -h -s), or correct the @cert-authority line"
	}
	return "compare the fingerprint with the server's own (ssh-keygen -lf on its host key), then run once with --accept-new"
}

// Error is What and Hint.
func (e *Unknown) Error() string { return e.What() + "; " + e.Hint() }

// Unwrap returns the error of a file that could not be read.
func (e *Unknown) Unwrap() error { return e.Err }

// Changed is the error of Check for a key that differs from all keys that are
// known under the name: someone may be in between, or the server has new keys.
type Changed struct {
	Name   string
	Remote string
	File   string  // where the first of Old stands
	Line   int     //
	Old    []Known // all keys known under the name, those of the same type first
	New    string  // type and fingerprint of the key that was offered
}

// What says what happened and which line disagrees.
func (e *Changed) What() string {
	old := make([]string, len(e.Old))
	for i, k := range e.Old {
		old[i] = k.String()
	}
	return fmt.Sprintf("host key of %s has CHANGED: it offered %s, known is %s",
		at(e.Name, e.Remote), e.New, strings.Join(old, ", "))
}

// Hint says what to do about it.
func (e *Changed) Hint() string {
	return fmt.Sprintf("do not log in before you know why; if the server really has a new key, remove the old one with: %s", removal(e.Name, e.File))
}

// Error is What and Hint.
func (e *Changed) Error() string { return e.What() + "; " + e.Hint() }

// Revoked is the error of Check for a key, or a certificate by an authority,
// that a @revoked line forbids.
type Revoked struct {
	Name   string
	Remote string
	File   string
	Line   int
	New    string // type and fingerprint of the key that was offered
}

// What says what happened and which line forbids the key.
func (e *Revoked) What() string {
	return fmt.Sprintf("host key of %s is REVOKED by %s:%d: it offered %s", at(e.Name, e.Remote), e.File, e.Line, e.New)
}

// Hint says what to do about it.
func (e *Revoked) Hint() string {
	return "do not log in: whoever holds a revoked key may pose as the server; give the server a new host key"
}

// Error is What and Hint.
func (e *Revoked) Error() string { return e.What() + "; " + e.Hint() }

// at names a host and, if it says more, its address.
func at(name, remote string) string {
	if remote == "" || remote == name {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, remote)
}

// removal is the command that removes a name from a file.
func removal(name, file string) string {
	return fmt.Sprintf("ssh-keygen -R %s -f %s", quote(name), quote(file))
}

// quote makes one shell word of s.
func quote(s string) string {
	safe := func(r rune) bool {
		return r < 0x80 && (strings.ContainsRune("%+,-./:=@_", r) || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z')
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
