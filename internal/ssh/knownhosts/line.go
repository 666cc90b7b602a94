package knownhosts

import (
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/ssh/pubkey"
)

// Marker is the @word at the start of a line.
type Marker uint8

// The markers of sshd(8). MarkerNone, the zero value, is a line that holds a host key.
const (
	MarkerNone    Marker = iota
	MarkerCA             // @cert-authority: the key signs host certificates
	MarkerRevoked        // @revoked: the key is never accepted
)

var markerWords = [...]string{MarkerNone: "", MarkerCA: "@cert-authority", MarkerRevoked: "@revoked"}

// String returns the word as in the file; empty for MarkerNone.
func (m Marker) String() string { return markerWords[m] }

// Line is one readable line of a file, cut into fields but not decoded: most lines of a large file
// are never needed.
type Line struct {
	Text    string // as in the file
	Number  int    // from 1
	Marker  Marker
	Hosts   string // as written
	Pattern bool   // Hosts needs matching: it has a wildcard, a negation or an over-long name
	key     string // key type, base64 and comment, as written
	hash    *hashedName
}

// Parse cuts one line, without its newline, into fields. It accepts what OpenSSH accepts
// (hostfile.c:hostkeys_foreach): leading blanks, fields separated by blanks or tabs, a comment
// after the key. Any number of carriage returns at the end are dropped: to ssh they are white space
// after the base64, which means nothing, or part of the comment. ok is false for an empty line or a
// comment, and with the error that says why ssh ignores the line; the key itself is checked only as
// far as "type blob".
func Parse(text string, number int) (l Line, ok bool, err error) {
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end] // C strings end here
	}
	l = Line{Text: text, Number: number}
	text = trimBlanks(strings.TrimRight(text, "\r"))
	if text == "" || text[0] == '#' {
		return Line{}, false, nil
	}
	marker, rest, err := cutMarker(text)
	if err != nil {
		return Line{}, false, err
	}
	l.Marker = marker
	l.Hosts, l.key = cutField(rest)
	if err := l.checkFields(); err != nil {
		return Line{}, false, err
	}
	return l, true, nil
}

// checkFields completes a line whose fields are cut.
func (l *Line) checkFields() (err error) {
	if l.Hosts == "" {
		return errors.New("no host name")
	}
	keyType, blob := cutField(l.key)
	if keyType == "" || keyType[0] == '#' || blob == "" {
		return errors.New("no key after the host name")
	}
	if l.Hosts[0] == '|' {
		l.hash, err = parseHashedName(l.Hosts)
		return err
	}
	l.Pattern = needsMatching(l.Hosts)
	return nil
}

// cutMarker takes an @word from the start of a line. Like OpenSSH it looks for a blank to end the
// word and for a tab only when the line has no blank at all, so that a marker followed by a tab is
// unreadable in most files.
func cutMarker(text string) (Marker, string, error) {
	if text[0] != '@' {
		return MarkerNone, text, nil
	}
	end := strings.IndexByte(text, ' ')
	if end < 0 {
		end = strings.IndexByte(text, '\t')
	}
	if end < 0 {
		return 0, "", errors.New("nothing after the marker")
	}
	for marker := MarkerCA; marker <= MarkerRevoked; marker++ {
		if text[:end] != marker.String() {
			continue
		}
		rest := trimBlanks(text[end:])
		if strings.HasPrefix(rest, "@") {
			return 0, "", errors.New("more than one marker")
		}
		return marker, rest, nil
	}
	return 0, "", errors.New("unknown marker (it must be @cert-authority or @revoked, and one blank)")
}

func trimBlanks(s string) string { return strings.TrimLeft(s, " \t") }

// cutField returns the text before the first blank and the text after the blanks.
func cutField(s string) (field, rest string) {
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		return s, ""
	}
	return s[:end], trimBlanks(s[end:])
}

// Key decodes the key of a line as sshkey_read does: the type that is written must be the type
// inside the blob, except that an RSA key may be written under the name of one of its signature
// algorithms.
func (l *Line) Key() (key ssh.PublicKey, comment string, err error) {
	keyType, rest := cutField(l.key)
	text, comment := cutField(rest)
	blob, err := base64.StdEncoding.Strict().DecodeString(withoutSpaces.Replace(text))
	if err != nil {
		if at, ok := errors.AsType[base64.CorruptInputError](err); ok && int(at) < len(text) {
			return nil, "", fmt.Errorf("the key is damaged or cut off at its character %d", int(at)+1)
		}
		return nil, "", errors.New("the key is cut off at its end")
	}
	key, err = pubkey.Parse(blob)
	if err != nil {
		return nil, "", fmt.Errorf("the key cannot be decoded: %w", err)
	}
	if !typeNames(keyType, key.Type()) {
		return nil, "", fmt.Errorf("the line says %q, the key is %s", keyType, key.Type())
	}
	return key, comment, nil
}

// Type returns the type of key that the line names, which need not be known here.
func (l *Line) Type() string {
	keyType, _ := cutField(l.key)
	return keyType
}

// withoutSpaces drops the white space that the base64 of OpenSSH ignores (isspace(3) in
// base64.c:b64_pton) and that can occur in a field. Go's own ignores \r and \n.
var withoutSpaces = strings.NewReplacer("\f", "", "\v", "")

// typeNames reports whether a key of the type kept in its blob may be written under name.
func typeNames(name, blobType string) bool {
	rsaSignature := name == ssh.KeyAlgoRSASHA256 || name == ssh.KeyAlgoRSASHA512
	return name == blobType || rsaSignature && blobType == ssh.KeyAlgoRSA
}

// String writes the line back; Parse of the result is the same line.
func (l Line) String() string {
	if l.Marker == MarkerNone {
		return l.Hosts + " " + l.key
	}
	return l.Marker.String() + " " + l.Hosts + " " + l.key
}

// Hashed reports whether the name of the host is hidden.
func (l *Line) Hashed() bool { return l.hash != nil }

// HashOf reports whether the hidden name is this one, in lower case.
func (l *Line) HashOf(name string) bool { return l.hash != nil && l.hash.matches(name) }

// HashOfAny returns which of many lower-case names is the hidden one, or -1.
func (l *Line) HashOfAny(names [][]byte) int {
	if l.hash == nil {
		return -1
	}
	return l.hash.matchAny(names)
}

// Covers reports whether the host field, taken as a list of patterns, matches a lower-case name.
func (l *Line) Covers(name string) bool { return wildcard.MatchListFold(name, l.Hosts) }

// MarshalKey returns the key as it is written in a line: type and base64.
func MarshalKey(key ssh.PublicKey) string {
	return key.Type() + " " + base64.StdEncoding.EncodeToString(key.Marshal())
}

// Fingerprint returns the key's type and SHA-256 fingerprint, as ssh-keygen -l prints the latter.
func Fingerprint(key ssh.PublicKey) string {
	return key.Type() + " " + ssh.FingerprintSHA256(key)
}

// RSABits returns the length of an RSA key, also of one inside a certificate; 0 for keys of other
// types.
func RSABits(key ssh.PublicKey) int {
	if cert, ok := key.(*ssh.Certificate); ok {
		key = cert.Key
	}
	if holder, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := holder.CryptoPublicKey().(*rsa.PublicKey); ok {
			return public.N.BitLen()
		}
	}
	return 0
}
