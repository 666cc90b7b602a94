package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"sshpace/internal/show/document"
)

// Markdown writes the report for a forge, a wiki or a mail: the main tables with the numbers as
// people read them, and the warnings to know before trusting them. With names of tables, only
// those.
func Markdown(w io.Writer, d *document.Document, names ...string) error {
	out := bufio.NewWriter(w)
	for i, name := range names {
		tables, err := tablesOf(d, name)
		if err != nil {
			return err
		}
		for k, t := range tables {
			if i+k > 0 {
				fmt.Fprintln(out)
			}
			if len(names) > 1 {
				fmt.Fprintf(out, "## %s\n\n", literal(t.Title))
			}
			markdownTable(out, t)
		}
	}
	if len(names) > 0 {
		return out.Flush()
	}
	fmt.Fprintf(out, "# %s\n\n", literal(d.Title))
	markdownAnswer(out, d.Answer)
	for _, line := range d.Lead {
		fmt.Fprintf(out, "- %s\n", literal(line))
	}
	for _, t := range d.Tables {
		fmt.Fprintf(out, "\n## %s\n\n", literal(t.Title))
		if t.Note != "" {
			fmt.Fprintf(out, "%s\n\n", literal(t.Note))
		}
		markdownTable(out, t)
	}
	markdownFacts(out, "How far to trust this", d.Quality)
	for _, doubt := range d.Doubts {
		fmt.Fprintf(out, "- **%s**\n", literal(doubt.String()))
	}
	markdownFacts(out, "Environment", d.Environment)
	return out.Flush()
}

// markdownAnswer writes the answer, and the lines to copy.
func markdownAnswer(w io.Writer, a document.Answer) {
	if len(a.Says) > 0 {
		fmt.Fprintf(w, "**%s**\n\n", literal(strings.Join(a.Says, " ")))
	}
	for _, s := range a.Steps {
		if s.Copy == "" {
			fmt.Fprintf(w, "- %s: %s\n", literal(s.What), literal(s.Note))
			continue
		}
		fmt.Fprintf(w, "- %s:\n\n      %s\n\n", literal(s.What), s.Copy)
	}
}

func markdownTable(w io.Writer, t document.Table) {
	heads, rules := "|", "|"
	for _, i := range t.Telling() {
		c := t.Columns[i]
		heads += " " + literal(c.Heading()) + " |"
		if c.Numeric() {
			rules += " ---: |"
		} else {
			rules += " --- |"
		}
	}
	fmt.Fprintln(w, heads)
	fmt.Fprintln(w, rules)
	for _, r := range t.Rows {
		line := "|"
		for _, i := range t.Telling() {
			line += " " + literal(t.Columns[i].Shown(r.Cells[i])) + " |"
		}
		fmt.Fprintln(w, line)
	}
}

func markdownFacts(w io.Writer, title string, facts []document.Fact) {
	if len(facts) == 0 {
		return
	}
	fmt.Fprintf(w, "\n## %s\n\n", title)
	for _, f := range facts {
		fmt.Fprintf(w, "- %s: %s\n", literal(f.Name), literal(f.Value))
	}
}

// literal keeps a text from being markup: the name of a host makes no link, no image, no element
// and no column, whatever it is (CommonMark 0.31, section 2.4).
var literal = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "|", `\|`, "#", `\#`, "!", `\!`,
).Replace
