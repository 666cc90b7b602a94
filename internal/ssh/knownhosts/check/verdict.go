package check

import (
	"fmt"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/shell"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/knownhosts/index"
)

// Known is a key in a file, named so that people can compare it. A key that cannot be decoded has
// the type that its line names, and no fingerprint.
type Known struct {
	File        string
	Line        int
	Type        string // such as "ssh-ed25519"
	Fingerprint string // "SHA256:..."
}

func knownOf(e index.Entry) Known {
	if e.Err != nil {
		return Known{File: e.File, Line: e.Line, Type: e.Type}
	}
	keyType, print, _ := strings.Cut(e.Fingerprint(), " ")
	return Known{File: e.File, Line: e.Line, Type: keyType, Fingerprint: print}
}

// String is "file:line (type fingerprint)".
func (k Known) String() string {
	if k.Fingerprint == "" {
		return fmt.Sprintf("%s:%d (a key of type %+q that cannot be read)", k.File, k.Line, k.Type)
	}
	return fmt.Sprintf("%s:%d (%s %s)", k.File, k.Line, k.Type, k.Fingerprint)
}

// Kind is the reason why a key is not trusted for a host.
type Kind uint8

// The kinds of a Verdict. The zero value is none of them.
const (
	_       Kind = iota
	Unknown      // the files hold no key under the name
	Changed      // other keys are known: this may be an attack, or the server has new keys
	Revoked      // a @revoked line forbids the key, or the authority of the certificate
)

// Verdict is the error of Key: why a key is not trusted for a host, and which lines decide that.
type Verdict struct {
	Kind   Kind
	Name   string   // as in a file
	Remote string   // the address that was reached; may be empty
	New    string   // type and fingerprint of the key that was offered
	Lines  []Known  // of Changed: all keys known under the name, those of the same type first; of Revoked: the one that forbids
	Files  []string // the files that were searched
	Reason string   // of Unknown: why a certificate, or a host with only a CA, was not accepted; often empty
	CA     bool     // of Unknown: only a valid certificate helps, since a @cert-authority line matches the name, or no other key is requested
	Err    error    // a file that could not be read; nil if all could
}

// OneMore reports whether the offered key is no other key but one more: the host has shown a known
// one too, and none of this type is known.
func (v *Verdict) OneMore(all []ssh.PublicKey) bool {
	keyType, _, _ := strings.Cut(v.New, " ")
	shown := func(k Known) bool {
		return slices.ContainsFunc(all, func(key ssh.PublicKey) bool { return knownhosts.Fingerprint(key) == k.Type+" "+k.Fingerprint })
	}
	return v.Kind == Changed && slices.ContainsFunc(v.Lines, shown) && !slices.ContainsFunc(v.Lines, func(k Known) bool { return k.Type == keyType })
}

// What describes the event and the lines that disagree, in one sentence without an end.
func (v *Verdict) What() string {
	host := "host key of " + at(v.Name, v.Remote)
	switch v.Kind {
	case Changed:
		return fmt.Sprintf("%s has CHANGED: it offered %s, known is %s", host, v.New, Joined(v.Lines))
	case Revoked:
		return fmt.Sprintf("%s is REVOKED by %s:%d: it offered %s", host, v.Lines[0].File, v.Lines[0].Line, v.New)
	}
	what := fmt.Sprintf("%s is unknown: it offered %s, not in %s", host, v.New, searched(v.Files))
	if v.Reason != "" {
		what = fmt.Sprintf("%s is not accepted: it offered %s, but %s", host, v.New, v.Reason)
	}
	if v.Err != nil {
		what += fmt.Sprintf(" (%v)", v.Err)
	}
	return what
}

// searched names the first of the searched files, which is the user's own.
func searched(files []string) string {
	switch len(files) {
	case 0:
		return "any file"
	case 1:
		return files[0]
	}
	return fmt.Sprintf("%s or %d more", files[0], len(files)-1)
}

// Joined puts all of the lines into one text.
func Joined(lines []Known) string {
	texts := make([]string, len(lines))
	for i, k := range lines {
		texts[i] = k.String()
	}
	return strings.Join(texts, ", ")
}

// Remedies for a changed key, a revoked and an unknown one, for all engines.
const (
	ChangedHint = "find out why the key changed: it may be an attack; only then forget the old one"
	RevokedHint = "do not log in: whoever holds a revoked key may pose as the server; give the server a new host key"
	UnknownHint = "compare the fingerprint with the server's own (ssh-keygen -lf on its host key), then run once with --accept-new"
)

// Hint suggests a remedy.
func (v *Verdict) Hint() string {
	switch {
	case v.Kind == Revoked:
		return RevokedHint
	case v.Kind == Changed:
		return Forget(v.Name, v.Lines[0].File)
	case v.CA:
		return "give the server a valid host certificate of that authority (ssh-keygen -h -s), or correct the @cert-authority line"
	}
	return UnknownHint
}

// Error returns What and Hint.
func (v *Verdict) Error() string { return v.What() + "; " + v.Hint() }

// Unwrap returns the error of a file that could not be read.
func (v *Verdict) Unwrap() error { return v.Err }

// at names a host and, if it says more, its address.
func at(name, remote string) string {
	bare := strings.NewReplacer("[", "", "]", "")
	if strings.TrimSuffix(bare.Replace(remote), ":22") == bare.Replace(name) || remote == "" {
		return name
	}
	return fmt.Sprintf("%s (%s)", name, remote)
}

// Forget returns ChangedHint with the command that removes a name from a file.
func Forget(name, file string) string {
	return ChangedHint + ": ssh-keygen " + shell.Line("-R", name, "-f", file)
}
