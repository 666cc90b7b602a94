package text

import "strings"

// Fit is the treatment of a cell whose table is wider than the terminal.
type Fit uint8

// The ways to fit a cell.
const (
	Keep  Fit = iota // it stays
	Cut              // it is cut
	Above            // it is shown whole, on its own line above the rest of its row
)

// Column describes the cells below it.
type Column struct {
	Head  string // a line break makes two lines
	Right bool
	Fit   Fit
	Tight bool // one blank before the column, not two
}

// Table is lines of cells in columns.
type Table struct {
	Columns []Column
	Rows    [][]string // a row may end early
}

// least is the width down to which a column is cut. If that is not enough, the last columns are cut
// down to narrow.
const (
	least  = 8
	narrow = 1
)

// Lines returns the heads, if any, and the rows, at most width columns wide as far as columns can
// be cut; 0 is any width.
func (t *Table) Lines(width int) []string {
	heads := t.heads()
	rows := append(heads, t.Rows...)
	widths := t.widths(rows, width)
	var out []string
	for _, row := range rows {
		out = append(out, t.line(row, widths)...)
	}
	return out
}

// Text returns the table as lines.
func (t *Table) Text(width int) string {
	if lines := t.Lines(width); len(lines) > 0 {
		return strings.Join(lines, "\n") + "\n"
	}
	return ""
}

func (t *Table) heads() (rows [][]string) {
	deepest := 0
	for _, c := range t.Columns {
		if c.Head != "" {
			deepest = max(deepest, 1+strings.Count(c.Head, "\n"))
		}
	}
	for i := range deepest {
		row := make([]string, len(t.Columns))
		for k, c := range t.Columns {
			lines := strings.Split(c.Head, "\n")
			if at := i - deepest + len(lines); at >= 0 { // short ones stand at the bottom
				row[k] = lines[at]
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// widths returns the widths of the columns: those of the longest cells. Columns that may be cut
// shrink, the widest first.
func (t *Table) widths(rows [][]string, width int) []int {
	widths := make([]int, len(t.Columns))
	total := 0
	for i := range t.Columns {
		for _, row := range rows {
			if i < len(row) {
				widths[i] = max(widths[i], Width(row[i]))
			}
		}
	}
	for i := range widths {
		total += t.gap(i, widths) + widths[i]
	}
	floor := least
	for width > 0 && total > width {
		at := -1
		for i, c := range t.Columns {
			if (c.Fit == Above && widths[i] > 0 || c.Fit == Cut && widths[i] > floor) && (at < 0 || widths[i] > widths[at] || floor == narrow) {
				at = i
			}
		}
		switch {
		case at < 0 && floor == narrow:
			return widths
		case at < 0:
			floor = narrow
			continue
		}
		widths[at]--
		if total--; at == 0 && widths[0] == 0 && len(widths) > 1 {
			total -= t.gap(1, []int{1})
		}
	}
	return widths
}

func (t *Table) gap(column int, widths []int) int {
	switch {
	case column == 0, column == 1 && widths[0] == 0:
		return 0
	case t.Columns[column].Tight:
		return 1
	}
	return 2
}

func (t *Table) line(row []string, widths []int) []string {
	var out []string
	line := ""
	for i, cell := range row {
		c := t.Columns[i]
		line += blanks(t.gap(i, widths))
		if Width(cell) > widths[i] {
			if c.Fit == Above {
				out = append(out, strings.TrimRight(line+cell, " "))
				line, cell = blanks(Width(line)), ""
			}
			cell = Clip(cell, widths[i])
		}
		if c.Right {
			line += PadLeft(cell, widths[i])
		} else {
			line += Pad(cell, widths[i])
		}
	}
	return append(out, strings.TrimRight(line, " "))
}
