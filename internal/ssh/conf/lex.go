package conf

import (
	"errors"
	"strings"

	"sshpace/internal/base/wildcard"
)

// Characters that separate words (misc.c).
const blanks = " \t\r\n"

var errQuotes = errors.New("invalid quotes")

// cursor walks over the words of a line by the older of the two rules of ssh (misc.c:strdelim):
// words end at blanks or one "=", double quotes group.
type cursor struct {
	text string
	done bool
}

// next returns the next word. ok is false at the end and after a quote that is never closed.
func (c *cursor) next() (word string, ok bool) {
	if c.done {
		return "", false
	}
	i := strings.IndexAny(c.text, blanks+`"=`)
	if i < 0 {
		c.done = true
		return c.text, true
	}
	if c.text[i] == '"' {
		return c.quoted(i)
	}
	word, equals := c.text[:i], c.text[i] == '='
	c.text = strings.TrimLeft(c.text[i+1:], blanks)
	if !equals && strings.HasPrefix(c.text, "=") {
		c.text = strings.TrimLeft(c.text[1:], blanks)
	}
	return word, true
}

func (c *cursor) quoted(open int) (word string, ok bool) {
	before, after := c.text[:open], c.text[open+1:]
	inside, rest, closed := strings.Cut(after, `"`)
	if !closed {
		c.done = true
		return "", false
	}
	c.text = strings.TrimLeft(rest, blanks)
	return before + inside, true
}

// splitLine separates the lower-case keyword of a line from its arguments. The keyword is empty for
// a line without effect: blank, a comment, or one that opens a quote and never closes it, which ssh
// skips as well.
func splitLine(line string) (keyword, rest string) {
	line, _, _ = strings.Cut(line, "\x00")
	for len(line) > 1 && strings.IndexByte(blanks+"\f", line[len(line)-1]) >= 0 {
		line = line[:len(line)-1]
	}
	c := cursor{text: line}
	keyword, ok := c.next()
	if ok && keyword == "" {
		keyword, ok = c.next()
	}
	if !ok || strings.HasPrefix(keyword, "#") {
		return "", ""
	}
	if !c.done {
		rest = strings.TrimLeft(c.text, blanks)
	}
	return wildcard.Lower(keyword), rest
}

// splitWords splits arguments by the newer rule of ssh (misc.c:argv_split): single and double
// quotes group, a backslash escapes quotes, itself and a blank. With comments, a word that begins
// with # ends the line.
func splitWords(s string, comments bool) ([]string, error) {
	var args []string
	for i := 0; i < len(s); {
		switch {
		case s[i] == ' ' || s[i] == '\t':
			i++
			continue
		case s[i] == '#' && comments:
			return args, nil
		}
		word, n, err := takeArg(s[i:])
		if err != nil {
			return nil, err
		}
		args = append(args, word)
		i += n
	}
	return args, nil
}

func takeArg(s string) (word string, length int, err error) {
	var out strings.Builder
	var quote byte
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && escapes(s[i+1], quote):
			i++
			out.WriteByte(s[i])
		case quote == 0 && (c == ' ' || c == '\t'):
			return out.String(), i, nil
		case quote == 0 && (c == '"' || c == '\''):
			quote = c
		case quote != 0 && c == quote:
			quote = 0
		default:
			out.WriteByte(c)
		}
	}
	if quote != 0 {
		return "", 0, errQuotes
	}
	return out.String(), len(s), nil
}

func escapes(c, quote byte) bool {
	return c == '\'' || c == '"' || c == '\\' || c == ' ' && quote == 0
}

// Quote writes a word for ssh_config: quoted only where necessary (misc.c, argv_split). No word can
// hold a newline there; it becomes a blank.
func Quote(word string) string {
	word = strings.NewReplacer("\n", " ", "\r", " ").Replace(word)
	if word != "" && !strings.ContainsAny(word, " \t'\"#=\\") {
		return word
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(word) + `"`
}
