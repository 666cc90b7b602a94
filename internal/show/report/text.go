// Package report writes a document as text for people, as Markdown and CSV, and a
// ranking as JSON for programs and as the lists of the classic benchmark loop. It
// decides nothing.
package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/show/document"
)

// Text writes the document for a terminal of 80 columns: its brief form.
func Text(w io.Writer, d *document.Document) error {
	out := bufio.NewWriter(w)
	for i, b := range d.Brief {
		if i > 0 {
			fmt.Fprintln(out)
		}
		block(out, b)
	}
	return out.Flush()
}

func block(w io.Writer, b document.Block) {
	if b.Title != "" {
		say(w, "%s", b.Title)
	}
	for _, cells := range append(b.Heads, b.Rows...) {
		line := ""
		for i, cell := range cells {
			line += aligned(cell, b.Fields[i]) + " "
		}
		row(w, "%s", line)
	}
	for _, line := range b.Lines {
		say(w, "%s", line)
	}
}

// aligned fills a cell up to the width of its field.
func aligned(cell string, f document.Field) string {
	if f.Cut {
		cell = fit(cell, f.Width)
	}
	if f.Right {
		return fmt.Sprintf("%*s", f.Width, cell)
	}
	return fmt.Sprintf("%-*s", f.Width, cell)
}

// say writes one line of text, broken at 80 columns with a hanging indent, but not at
// spaces that join.
func say(w io.Writer, format string, args ...any) {
	if rest, ok := strings.CutPrefix(format, "\n"); ok {
		fmt.Fprintln(w)
		format = rest
	}
	text := strings.ReplaceAll(termsafe.Line(fmt.Sprintf(format, args...)), " %", joined+"%")
	line := ""
	for _, word := range strings.SplitAfter(text, " ") {
		if utf8.RuneCountInString(line)+utf8.RuneCountInString(strings.TrimRight(word, " ")) > 80 && strings.TrimSpace(line) != "" {
			fmt.Fprintln(w, unjoined(line))
			line = "    "
		}
		line += word
	}
	fmt.Fprintln(w, unjoined(line))
}

// joined is a space at which no line is broken.
const joined = "\u00a0"

func unjoined(line string) string {
	return strings.TrimRight(strings.ReplaceAll(line, joined, " "), " ")
}

// row writes one line of a table.
func row(w io.Writer, format string, cells ...any) {
	fmt.Fprintln(w, strings.TrimRight(termsafe.Line(fmt.Sprintf(format, cells...)), " "))
}

// fit cuts a name that is too long for its column.
func fit(name string, width int) string {
	if utf8.RuneCountInString(name) <= width {
		return name
	}
	return string([]rune(name)[:width-1]) + "…"
}
