package document

import (
	"cmp"
	"slices"
	"strings"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
)

// Block is a piece of a report on a terminal: a title, a table, and lines below it. Each may be
// missing.
type Block struct {
	Title string
	Table *Table
	Lines []string
	Spare int // rows of the table that may go where all is too long
}

// Text returns the block in lines of at most width columns; 0: any width.
func (b Block) Text(width int) (out []string) {
	if b.Title != "" {
		out = text.Line(b.Title, width)
	}
	if b.Table != nil {
		t := b.Table.text()
		out = append(out, t.Lines(cmp.Or(width, text.Columns))...)
	}
	for _, line := range b.Lines {
		out = append(out, text.Line(line, width)...)
	}
	return out
}

// length counts the lines of blocks on a terminal, and those between them.
func length(blocks []Block) int {
	n := len(blocks) - 1
	for _, b := range blocks {
		for _, line := range b.Text(text.Columns) {
			n += 1 + max(0, text.Width(line)-1)/text.Columns
		}
	}
	return n
}

// mostLines is the most lines that a row takes: leaving out lines/mostLines rows never leaves out
// too many.
const mostLines = 4

// Fit leaves out spare rows of tables, the last ones first, until blocks, and follow lines after
// them, fit a screen; hidden counts the rows.
func Fit(blocks []Block, follow int) (fitting []Block, hidden int) {
	for {
		over := length(blocks) + follow - screenLines
		if over <= 0 {
			break
		}
		last := len(blocks) - 1
		for last >= 0 && blocks[last].Spare == 0 {
			last--
		}
		if last < 0 {
			break
		}
		t := *blocks[last].Table
		out := min(blocks[last].Spare, max(1, over/mostLines))
		t.Rows = t.Rows[:len(t.Rows)-out]
		blocks[last].Table = &t
		if blocks[last].Spare -= out; len(t.Rows) == 0 {
			blocks = slices.Delete(blocks, last, last+1)
		}
		hidden += out
	}
	return blocks, hidden
}

// SavedLines counts the lines after a report when its result is saved.
const SavedLines = 3

// Screenful returns as much of blocks, remarks and last lines as fits a screen above follow other
// lines, and the command that shows the rest: all rows of the tables with as many remarks as fit,
// or else one remark, which may be cut, and as many rows as fit. Tables that cannot be shortened
// are kept.
func Screenful(blocks []Block, remarks []string, follow int, command string, last []string) []Block {
	if !slices.ContainsFunc(blocks, func(b Block) bool { return b.Spare > 0 }) {
		for i := range blocks {
			if blocks[i].Table != nil {
				blocks[i].Spare = len(blocks[i].Table.Rows)
			}
		}
	}
	more := func(hidden int, what string) string {
		return string(text.Whole(unit.Count(hidden, "more "+what) + ": " + command))
	}
	end := func(shown int) Block {
		lines := slices.Clone(remarks[:shown])
		if hidden := len(remarks) - shown; hidden > 0 {
			lines = append(lines, more(hidden, "remark"))
		}
		return Block{Lines: Apart(lines, last)}
	}
	taken := length(blocks) + 1 + follow
	for shown := min(len(remarks), screenLines); taken <= screenLines && shown >= 0; shown-- {
		if rest := end(shown); taken+length([]Block{rest}) <= screenLines {
			return append(slices.Clone(blocks), rest)
		}
	}
	if len(remarks) > 0 {
		remarks = append([]string{text.Clip(remarks[0], 2*text.Columns)}, remarks[1:]...)
	}
	rest := end(min(1, len(remarks)))
	blocks, hidden := Fit(blocks, length([]Block{{Lines: []string{more(2, "row")}}, rest})+1+follow)
	if hidden > 0 {
		blocks = append(blocks, Block{Lines: []string{more(hidden, "row")}})
	}
	return append(blocks, rest)
}

// Apart joins lines and others, with a blank line between them.
func Apart(lines, others []string) []string {
	if len(lines) > 0 && len(others) > 0 {
		lines = append(lines, "")
	}
	return append(lines, others...)
}

// Clean makes text of files and hosts safe to show, and drops empty blocks.
func Clean(blocks []Block) []Block {
	for i := range blocks {
		blocks[i].Title = clean(blocks[i].Title)
		for k, line := range blocks[i].Lines {
			blocks[i].Lines[k] = clean(line)
		}
	}
	return slices.DeleteFunc(blocks, func(b Block) bool { return len(b.Lines) == 0 && (b.Table == nil || len(b.Table.Rows) == 0) })
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
