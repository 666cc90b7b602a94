package termsafe

import (
	"strings"
	"unicode/utf8"
)

// Fold breaks a text between words into lines of at most width characters; a word
// that is longer has a line of its own.
func Fold(text string, width int) (lines []string) {
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		if last >= 0 && utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) <= width {
			lines[last] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}
