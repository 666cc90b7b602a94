// Package text lays out text for a terminal: one way to count columns, to cut a line, to break a
// paragraph, and one table. It knows nothing about the content.
package text

import (
	"slices"
	"strings"
	"unicode"
)

// Columns is the width that reports are made for.
const Columns = 80

// wide lists the characters that take two columns (UAX 11, East Asian Wide and Fullwidth, in whole
// blocks).
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xac00, 0xd7a3, 1}, {0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1}},
	R32: []unicode.Range32{{0x1f300, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.Is(wide, r):
		return 2
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	return 1
}

// Width returns the columns that a text takes. Colors take none.
func Width(s string) int {
	n := 0
	each(s, func(_, columns int) bool { n += columns; return true })
	return n
}

// each calls visit with the beginning and the columns of each character.
func each(s string, visit func(at, columns int) bool) {
	color := false
	for i, r := range s {
		columns := columnsOf(r)
		if color || r == '\x1b' {
			color, columns = r != 'm', 0
		}
		if !visit(i, columns) {
			return
		}
	}
}

// LastLine returns the last non-empty line of a text.
func LastLine(s string) string {
	s = strings.TrimRight(s, " \t\r\n")
	return strings.TrimSpace(s[strings.LastIndexAny(s, "\r\n")+1:])
}

// Clip cuts a text that is wider than width; its last character then shows the cut.
func Clip(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	return head(s, width-1) + "…"[:3*min(1, max(0, width))]
}

// head returns as much of a text as fits.
func head(s string, width int) string {
	end := len(s)
	each(s, func(at, columns int) bool {
		if width -= columns; width < 0 {
			end = at
		}
		return width >= 0
	})
	return s[:end]
}

// Rest returns what follows the first columns of a text.
func Rest(s string, columns int) string { return s[len(head(s, columns)):] }

// Pad fills a text up to a width.
func Pad(s string, width int) string { return s + blanks(width-Width(s)) }

// PadLeft puts blanks before a text, up to a width.
func PadLeft(s string, width int) string { return blanks(width-Width(s)) + s }

func blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

// noBreak is a blank at which no line is broken. It is shown as a blank.
const noBreak = "\u00a0"

// Whole returns a text that Wrap never breaks, such as a line to copy.
func Whole(s string) string { return strings.ReplaceAll(s, " ", noBreak) }

// Wrap breaks a text between words into lines of a width; 0 is the width of reports. The first line
// begins with prefix, and the others are indented as far. Runs of blanks inside a line stay. A word
// that is too long has its own line, and moves left as far as necessary.
func Wrap(prefix, s string, width int) []string {
	if width <= 0 {
		width = Columns
	}
	var out []string
	line, indent, empty := prefix, Width(prefix), true
	end := func() { out = append(out, strings.TrimRight(strings.ReplaceAll(line, noBreak, " "), " ")) }
	for _, word := range strings.SplitAfter(strings.ReplaceAll(s, " %", Whole(" %")), " ") {
		long := Width(strings.TrimRight(word, " "))
		if Width(line)+long > width && strings.Trim(line, " ") != "" && long > 0 {
			end()
			line, empty = blanks(max(0, min(indent, width-long))), true
		}
		if empty {
			word = strings.TrimLeft(word, " ")
		}
		line += word
		empty = empty && word == ""
	}
	end()
	return out
}

// Line breaks a line that is wider than width, and aligns the continuation with its second word; 0:
// any width.
func Line(s string, width int) []string {
	rest := strings.TrimLeft(s, " ")
	return Wrap(s[:len(s)-len(rest)], rest, width)
}

// NonEmpty returns the parts that are not empty.
func NonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}
