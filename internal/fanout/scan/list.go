package scan

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/knownhosts"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/file"
)

// List is a list of fingerprints that somebody vouches for.
type List struct {
	Name  string
	hosts map[string][]listLine // by name, in lower case
}

// listLine is a fingerprint of one host.
type listLine struct {
	number      int
	fingerprint string // SHA256:...
	kind        string // such as ED25519; "" where the line does not say it
}

const listHint = "each line is HOST SHA256:FINGERPRINT, or one of ssh-keygen -lf with the host as its comment; every host and key once"

// maxList bounds the text of a list.
const maxList = 64 << 20

// ReadList reads lines "HOST[,HOST...] [TYPE] SHA256:..." and those of ssh-keygen -lf, whose
// comment is the host. All wrong lines are one error.
func ReadList(name string, text []byte) (*List, error) {
	l := &List{Name: name, hosts: map[string][]listLine{}}
	var wrong []string
	for i, line := range strings.Split(string(text), "\n") {
		if err := l.add(i+1, strings.Fields(line)); err != nil {
			wrong = append(wrong, fmt.Sprintf("line %d %s", i+1, err))
		}
	}
	const shown = 3
	switch more := len(wrong) - shown; {
	case more > 0:
		wrong = append(wrong[:shown], fmt.Sprintf("%d more lines are wrong", more))
	case len(wrong) == 0 && len(l.hosts) == 0:
		wrong = []string{"it has no line"}
	}
	if len(wrong) > 0 {
		return nil, fault.Usage(listHint,
			"%s: %s", name, strings.Join(wrong, "; "))
	}
	return l, nil
}

// add adds a line that is cut into fields.
func (l *List) add(number int, fields []string) error {
	if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
		return nil
	}
	at := slices.IndexFunc(fields, isFingerprint)
	if at < 0 {
		return errors.New("has no SHA256 fingerprint")
	}
	before, after, kind := fields[:at], fields[at+1:], ""
	if len(after) > 0 && isInBrackets(after[len(after)-1]) {
		kind, after = kindOf(strings.Trim(after[len(after)-1], "()")), after[:len(after)-1]
	}
	switch {
	case slices.ContainsFunc(after, isFingerprint):
		return errors.New("has two fingerprints")
	case len(before) == 1 && isNumber(before[0]): // of ssh-keygen
		if len(after) != 1 {
			return fmt.Errorf("names no host: its comment is %q", strings.Join(after, " "))
		}
		before = []string{after[0][strings.LastIndex(after[0], "@")+1:]}
	case len(before) == 2 && !isNumber(before[1]):
		kind = kindOf(before[1])
	case len(before) == 0, len(before) > 2:
		return errors.New("does not begin with one name of a host")
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(before[0], ":"), ",") {
		if err := knownhosts.CheckName(name); err != nil {
			return fmt.Errorf("is wrong: %w", err)
		}
		if err := l.addHost(wildcard.Lower(name), listLine{number, fields[at], kind}); err != nil {
			return err
		}
	}
	return nil
}

// addHost adds a fingerprint that no earlier line has or contradicts.
func (l *List) addHost(name string, added listLine) error {
	for _, old := range l.hosts[name] {
		switch {
		case old.fingerprint == added.fingerprint:
			return fmt.Errorf("repeats line %d", old.number)
		case old.kind != "" && old.kind == added.kind:
			return fmt.Errorf("contradicts line %d: two %s keys of %s", old.number, added.kind, name)
		}
	}
	l.hosts[name] = append(l.hosts[name], added)
	return nil
}

// of returns the lines about a host, by the first of its names that has any.
func (l *List) of(names ...string) []listLine {
	for _, name := range names {
		if lines := l.hosts[wildcard.Lower(name)]; len(lines) > 0 {
			return lines
		}
	}
	return nil
}

// others says for whom the list has a fingerprint; "" if for nobody.
func (l *List) others(fingerprint string) string {
	for _, name := range slices.Sorted(maps.Keys(l.hosts)) {
		for _, line := range l.hosts[name] {
			if line.fingerprint == fingerprint {
				return fmt.Sprintf("%s:%d has it for %s", l.Name, line.number, name)
			}
		}
	}
	return ""
}

// kindOf turns the name of a type of keys into ssh-keygen's.
func kindOf(keyType string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(strings.ToUpper(keyType), "SSH-"), "-SHA2")
	return kind
}

// namespaces are those in which the signature of a list may be.
var namespaces = []string{"sshpace-known-hosts", "file"}

// Signature is the signature of a list by ssh-keygen -Y sign.
type Signature struct {
	openssh.Signature
	Principal string
}

// Verify lets ssh-keygen verify the signature of a text.
func (s Signature) Verify(ctx context.Context, name string, text []byte) (err error) {
	for _, namespace := range namespaces {
		if err = s.Signature.Verify(ctx, s.Principal, namespace, text); err == nil || !strings.Contains(err.Error(), "namespace") {
			break
		}
	}
	if err == nil {
		return nil
	}
	return &fault.Error{
		What: fmt.Sprintf("%s is not signed by %s: %s", name, s.Principal, err),
		Hint: "sign it with ssh-keygen -Y sign -n " + namespaces[0] + " -f KEY " + name, Code: fault.Misuse,
	}
}

// Open reads a list, and verifies its signature if it has one.
func Open(ctx context.Context, name string, s *Signature) (*List, error) {
	text, err := file.ReadFile(name, maxList)
	if err != nil {
		err = &fault.Error{Err: err, Hint: listHint, Code: fault.Misuse}
	}
	if err == nil && s != nil {
		err = s.Verify(ctx, name, text)
	}
	if err != nil {
		return nil, err
	}
	return ReadList(name, text)
}

// isInBrackets reports whether a word is the type of a key as ssh-keygen -lf prints it.
func isInBrackets(word string) bool {
	return strings.HasPrefix(word, "(") && strings.HasSuffix(word, ")")
}

// isNumber reports whether a word is a number, such as the length of a key.
func isNumber(word string) bool { return word != "" && strings.Trim(word, "0123456789") == "" }

// isFingerprint reports whether a word is the fingerprint of a key, as OpenSSH prints it.
func isFingerprint(word string) bool {
	text, ok := strings.CutPrefix(word, "SHA256:")
	sum, err := base64.RawStdEncoding.DecodeString(text)
	return ok && err == nil && len(sum) == sha256.Size
}
