// Package shell writes words for a POSIX shell.
package shell

import "strings"

// Quote makes one word of any text.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// plain are the characters, beside letters and digits, that mean nothing to a
// shell, but for = in the first word of a line.
const plain = "-_=+.,:/@%"

// Word is a word as people write it: quoted only where it must be.
func Word(word string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(plain, r))
	}
	if word == "" || strings.ContainsFunc(word, special) {
		return Quote(word)
	}
	return word
}

// Line is a command line, or the end of one.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Word(word)
	}
	return strings.Join(quoted, " ")
}
