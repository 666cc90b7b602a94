package document

import (
	"cmp"
	"slices"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
)

// Text returns the table in lines of at most width columns; 0: any width.
func (t Table) Text(width int) (out []string) {
	if t.Title != "" {
		out = text.Line(t.Title, width)
	}
	if len(t.Rows) > 0 {
		own := t.text()
		out = append(out, own.Lines(cmp.Or(width, text.Columns))...)
	}
	for _, line := range t.Lines {
		out = append(out, text.Line(line, width)...)
	}
	return out
}

// untitled returns the table without its title.
func (t Table) untitled() Table {
	t.Title = ""
	return t
}

// length counts the lines of tables on a terminal, and those between them.
func length(tables []Table) int {
	n := len(tables) - 1
	for _, t := range tables {
		for _, line := range t.Text(text.Columns) {
			n += 1 + max(0, text.Width(line)-1)/text.Columns
		}
	}
	return n
}

// mostLines is the most lines that a row takes: leaving out lines/mostLines rows never leaves out
// too many.
const mostLines = 4

// Fit leaves out spare rows of tables, the last ones first, until the tables, and follow lines
// after them, fit a screen; hidden counts the rows.
func Fit(tables []Table, follow int) (fitting []Table, hidden int) {
	for {
		over := length(tables) + follow - screenLines
		last := len(tables) - 1
		for last >= 0 && tables[last].Spare == 0 {
			last--
		}
		if over <= 0 || last < 0 {
			return tables, hidden
		}
		t := &tables[last]
		out := min(t.Spare, max(1, over/mostLines))
		t.Rows, t.Spare, hidden = t.Rows[:len(t.Rows)-out], t.Spare-out, hidden+out
		if len(t.Rows) == 0 {
			tables = slices.Delete(tables, last, last+1)
		}
	}
}

// SavedLines counts the lines after a report when its result is saved.
const SavedLines = 3

// Screenful returns as much of tables, remarks and last lines as fits a screen above follow other
// lines, and the command that shows the rest: all rows of the tables with as many remarks as fit,
// or else one remark, which may be cut, and as many rows as fit. Tables that cannot be shortened
// are kept.
func Screenful(tables []Table, remarks []string, follow int, command string, last []string) []Table {
	if !slices.ContainsFunc(tables, func(t Table) bool { return t.Spare > 0 }) {
		for i := range tables {
			tables[i].Spare = len(tables[i].Rows)
		}
	}
	more := func(hidden int, what string) string {
		return string(text.Whole(unit.Count(hidden, "more "+what) + ": " + command))
	}
	end := func(shown int) Table {
		lines := slices.Clone(remarks[:shown])
		if hidden := len(remarks) - shown; hidden > 0 {
			lines = append(lines, more(hidden, "remark"))
		}
		return Table{Lines: Apart(lines, last)}
	}
	taken := length(tables) + 1 + follow
	for shown := min(len(remarks), screenLines); taken <= screenLines && shown >= 0; shown-- {
		if rest := end(shown); taken+length([]Table{rest}) <= screenLines {
			return append(slices.Clone(tables), rest)
		}
	}
	if len(remarks) > 0 {
		remarks = append([]string{text.Clip(remarks[0], 2*text.Columns)}, remarks[1:]...)
	}
	rest := end(min(1, len(remarks)))
	tables, hidden := Fit(tables, length([]Table{{Lines: []string{more(2, "row")}}, rest})+1+follow)
	if hidden > 0 {
		tables = append(tables, Table{Lines: []string{more(hidden, "row")}})
	}
	return append(tables, rest)
}

// Apart joins lines and others, with a blank line between them.
func Apart(lines, others []string) []string {
	if len(lines) > 0 && len(others) > 0 {
		lines = append(lines, "")
	}
	return append(lines, others...)
}

// Clean makes text of files and hosts safe to show, and drops empty tables.
func Clean(tables []Table) []Table {
	for i := range tables {
		tables[i].Title = clean(tables[i].Title)
		for k, line := range tables[i].Lines {
			tables[i].Lines[k] = clean(line)
		}
	}
	return slices.DeleteFunc(tables, func(t Table) bool { return len(t.Lines)+len(t.Rows) == 0 })
}

// text turns a table into columns of text. The interval of a quantity has its own column. Columns
// whose values are all not worth a word are left out.
func (t *Table) text() text.Table {
	out := text.Table{Rows: make([][]string, len(t.Rows))}
	add := func(c text.Column, cells []string) {
		if !slices.ContainsFunc(cells, func(s string) bool { return s != "" && s != unknown }) {
			return
		}
		out.Columns = append(out.Columns, c)
		for i, s := range cells {
			out.Rows[i] = append(out.Rows[i], s)
		}
	}
	for i, c := range t.Columns {
		if c.Minor {
			continue
		}
		values, bounds := make([]string, len(t.Rows)), make([]string, len(t.Rows))
		for k, row := range t.Rows {
			values[k], bounds[k] = c.Brief(row.Cells[i])
		}
		head := c.Terse
		if head == "" {
			head = c.Heading()
		}
		add(text.Column{Head: strings.ReplaceAll(head, "|", "\n"), Right: c.Numeric(), Fit: c.Fit, Tight: head == " " || c.Kind == Quantity && c.Bare}, values)
		if !c.Bare {
			add(text.Column{Tight: true}, bounds)
		}
	}
	return out
}

// Brief prints a value in little room, and its interval.
func (c Column) Brief(cell Cell) (value, bounds string) {
	value, bounds = c.Parts(cell)
	switch {
	case slices.Contains(c.Usual, value):
		value = ""
	case c.Kind == Name:
		value = Short(value)
	}
	return termsafe.Line(value), bounds
}
