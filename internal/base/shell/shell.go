// Package shell writes words for a POSIX shell, and reads them. It runs none.
package shell

import (
	"errors"
	"strconv"
	"strings"
)

// Quote turns any text into one word.
func Quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// plain lists the characters, besides letters and digits, that mean nothing to a shell, except = in
// the first word of a line.
const plain = "-_=+.,:/@%"

// Word writes a word as people do: quoted only where necessary.
func Word(word string) string {
	special := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune(plain, r))
	}
	if word == "" || strings.ContainsFunc(word, special) {
		return Quote(word)
	}
	return word
}

// Line joins words into a command line, or the end of one.
func Line(words ...string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = Word(word)
	}
	return strings.Join(quoted, " ")
}

// Print returns a command line that writes a text, which may hold anything: printf(1) interprets %
// and \, and newlines are easier to read as \n.
func Print(text string) string {
	return "printf " + Quote(strings.NewReplacer("%", "%%", `\`, `\\`, "\n", `\n`).Replace(text))
}

// Substitute returns a command line that replaces a pattern of sed(1) by any text in a line of a
// file, and keeps a copy of the file.
func Substitute(file string, line int, pattern, text string) string {
	text = strings.NewReplacer(`\`, `\\`, "/", `\/`, "&", `\&`, "\n", `\n`).Replace(text)
	return "sed -i.bak " + Quote(strconv.Itoa(line)+"s/"+pattern+"/"+text+"/") + " " + Word(file)
}

// Split cuts a line into words as Python's shlex does in POSIX mode: quotes and backslashes, and
// nothing is expanded.
func Split(line string) ([]string, error) { return split(line, false) }

// SplitComments is Split where # begins a comment.
func SplitComments(line string) ([]string, error) { return split(line, true) }

func split(line string, comments bool) ([]string, error) {
	var words []string
	var word strings.Builder
	open, quote := false, byte(0)
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case c == '\\' && quote != '\'' && i+1 < len(line) && (quote == 0 || line[i+1] == '"' || line[i+1] == '\\'):
			i++
			word.WriteByte(line[i])
			open = true
		case quote != 0:
			word.WriteByte(c)
		case c == '"' || c == '\'':
			quote, open = c, true
		case c == '#' && comments:
			i = len(line)
		case strings.IndexByte(" \t\r\n", c) >= 0:
			if open {
				words = append(words, word.String())
				word.Reset()
				open = false
			}
		default:
			word.WriteByte(c)
			open = true
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if open {
		words = append(words, word.String())
	}
	return words, nil
}
