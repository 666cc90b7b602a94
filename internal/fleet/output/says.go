package output

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"

	"sshpace/internal/base/wildcard"
	"sshpace/internal/sys/journal"
)

// plain is a word that JSON writes as it is.
var plain = wildcard.Regexp(`^[a-zA-Z0-9 _./:=+-]*$`)

// Says reports whether the output in a record has all of the words, in any case of letters. A word
// that stands where a long line is cut into pieces is not found.
func Says(r io.Reader, words []string) bool {
	odd := slices.ContainsFunc(words, func(word string) bool { return !plain().MatchString(word) })
	for line, err := range journal.Lines(r) {
		if kind, _ := kindOf(line); err != nil || kind != "output" {
			continue
		}
		if !odd && len(without(line, words)) == len(words) && !bytes.Contains(line, []byte(`"base64":`)) {
			continue // it need not be parsed
		}
		var rec outputRecord
		_ = json.Unmarshal(line, &rec)
		text, _ := rec.content() // as far as it can be read
		if words = without(text, words); len(words) == 0 {
			return true
		}
	}
	return false
}

// without returns the words that are not in the text.
func without(text []byte, words []string) []string {
	text = bytes.ToLower(text)
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return bytes.Contains(text, []byte(strings.ToLower(word))) })
}
