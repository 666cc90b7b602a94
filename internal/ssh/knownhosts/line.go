package knownhosts

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/ssh"
)

// Marker is the @word at the start of a line.
type Marker uint8

// The markers of sshd(8). MarkerNone, the zero value, is a line that holds a
// host key.
const (
	MarkerNone    Marker = iota
	MarkerCA             // @cert-authority: the key signs host certificates
	MarkerRevoked        // @revoked: the key is never accepted
)

var markerWords = [...]string{MarkerNone: "", MarkerCA: "@cert-authority", MarkerRevoked: "@revoked"}

// String is the word as it stands in the file; empty for MarkerNone.
func (m Marker) String() string { return markerWords[m] }

// line is one readable line of a file, cut into fields but not decoded: most
// lines of a large file are never asked for.
type line struct {
	text    string // as it stands in the file
	number  int    // from 1
	marker  Marker
	hosts   string // as written
	key     string // key type, base64 and comment, as written
	pattern bool   // hosts needs matching: it has a wildcard, a negation or an over-long name
	hash    *hashedName
}

// lineKind tells what parseLine made of a line.
type lineKind uint8

const (
	lineBlank lineKind = iota // empty or a comment
	lineEntry
	lineBad
)

// parseLine cuts one line, without its newline, into fields. It accepts what
// OpenSSH accepts (hostfile.c:hostkeys_foreach): leading blanks, fields
// separated by blanks or tabs, a comment after the key. Carriage returns at the
// end are dropped, however many: to ssh they are white space behind the base64,
// which means nothing, or part of the comment. The error says why a line is lineBad; the key itself is
// looked at only as far as "type blob".
func parseLine(text string, number int) (line, lineKind, error) {
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end] // C strings end here
	}
	l := line{text: text, number: number}
	text = trimBlanks(strings.TrimRight(text, "\r"))
	if text == "" || text[0] == '#' {
		return line{}, lineBlank, nil
	}
	marker, rest, err := cutMarker(text)
	if err != nil {
		return line{}, lineBad, err
	}
	l.marker = marker
	l.hosts, l.key = cutField(rest)
	if err := l.checkFields(); err != nil {
		return line{}, lineBad, err
	}
	return l, lineEntry, nil
}

// checkFields completes a line whose fields are cut.
func (l *line) checkFields() (err error) {
	if l.hosts == "" {
		return errors.New("no host name")
	}
	keyType, blob := cutField(l.key)
	if keyType == "" || keyType[0] == '#' || blob == "" {
		return errors.New("no key after the host name")
	}
	if l.hosts[0] == '|' {
		l.hash, err = parseHashedName(l.hosts)
		return err
	}
	l.pattern = needsMatching(l.hosts)
	return nil
}

// cutMarker takes an @word from the start of a line. Like OpenSSH it looks for
// a blank to end the word and for a tab only when the line has no blank at all,
// so that a marker followed by a tab is unreadable in most files.
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

// cutField returns the text before the first blank and what follows the blanks.
func cutField(s string) (field, rest string) {
	end := strings.IndexAny(s, " \t")
	if end < 0 {
		return s, ""
	}
	return s[:end], trimBlanks(s[end:])
}

// parseKey decodes the key of a line as sshkey_read does: the type that is
// written must be the type inside the blob, except that an RSA key may be
// written under the name of one of its signature algorithms.
func (l line) parseKey() (key ssh.PublicKey, comment string, err error) {
	keyType, rest := cutField(l.key)
	text, comment := cutField(rest)
	blob, err := base64.StdEncoding.Strict().DecodeString(withoutSpaces.Replace(text))
	if err != nil {
		return nil, "", fmt.Errorf("the key is not base64: %w", err)
	}
	key, err = ssh.ParsePublicKey(blob)
	if err != nil {
		return nil, "", fmt.Errorf("the key cannot be decoded: %w", err)
	}
	if !typeNames(keyType, key.Type()) {
		return nil, "", fmt.Errorf("the line says %q, the key is %s", keyType, key.Type())
	}
	return key, comment, nil
}

// withoutSpaces drops the white space that the base64 of OpenSSH passes over
// (isspace(3) in base64.c:b64_pton) and can stand in a field. Go's own passes
// over \r and \n.
var withoutSpaces = strings.NewReplacer("\f", "", "\v", "")

// typeNames reports whether a key of the type kept in its blob may be written
// under name.
func typeNames(name, blobType string) bool {
	rsaSignature := name == ssh.KeyAlgoRSASHA256 || name == ssh.KeyAlgoRSASHA512
	return name == blobType || rsaSignature && blobType == ssh.KeyAlgoRSA
}

// String writes the line back; parseLine of the result is the same line.
func (l line) String() string {
	if l.marker == MarkerNone {
		return l.hosts + " " + l.key
	}
	return l.marker.String() + " " + l.hosts + " " + l.key
}
