package text

import (
	"fmt"
	"strings"
)

// Manual builds a page of a manual in man(7).
type Manual struct{ out strings.Builder }

// String returns the page so far.
func (p *Manual) String() string { return p.out.String() }

// Line writes a line; words in it are made safe by Escaped or Quoted.
func (p *Manual) Line(format string, args ...any) { fmt.Fprintf(&p.out, format+"\n", args...) }

// Text writes paragraphs, which blank lines separate; indented lines are written as they are.
func (p *Manual) Text(s string) {
	for block := range strings.SplitSeq(strings.TrimSpace(s), "\n\n") {
		p.Line(".PP")
		if lines := strings.Split(block, "\n"); strings.HasPrefix(block, " ") {
			p.Verbatim(lines)
		} else {
			p.Line("%s", Escaped(block))
		}
	}
}

// Entry writes a word and its meaning.
func (p *Manual) Entry(word, meaning string) {
	p.Line(".TP\n\\fB%s\\fR\n%s", Escaped(word), Escaped(meaning))
}

// Verbatim writes lines as they are.
func (p *Manual) Verbatim(lines []string) {
	p.Line(".PP\n.nf\n.RS 2")
	for _, line := range lines {
		p.Line("%s", Escaped(line))
	}
	p.Line(".RE\n.fi")
}

// Escaped makes text safe for man(7): no character is an escape, and no line a request.
func Escaped(s string) string {
	s = strings.NewReplacer(`\`, `\e`, `-`, `\-`, `'`, `\(aq`, "`", `\(ga`, `^`, `\(ha`, `~`, `\(ti`).Replace(s)
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// Quoted returns one argument of a request.
func Quoted(s string) string { return `"` + strings.ReplaceAll(Escaped(s), `"`, `""`) + `"` }
