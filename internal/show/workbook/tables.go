package workbook

import (
	"cmp"
	"strconv"

	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// summary writes the first sheet: the result and its reliability.
func (b *book) summary(d *document.Document) {
	s := b.sheet("summary")
	s.Width(1, 1, 26)
	s.Width(2, 2, 110)
	s.Text(1, 1, d.Title, b.title)
	row := 2
	say := func(name, value string) {
		s.Text(1, row, name, b.wrap)
		s.Text(2, row, value, b.wrap)
		high(s, row, lines(value))
		row++
	}
	for _, line := range d.Answer.Says {
		say("answer", line)
	}
	for _, step := range d.Answer.Steps {
		say(step.What, step.String())
	}
	for _, line := range d.Lead {
		say("", line)
	}
	for _, f := range d.Quality {
		say(f.Name, f.Value)
	}
	for _, doubt := range d.Doubts {
		say("warning", doubt.String())
	}
	for _, m := range d.Method {
		say("method", m)
	}
}

// table writes one table to its own sheet. A quantity takes four columns: the value in the unit of
// the heading, its interval, and its basis.
func (b *book) table(t document.Table) {
	s := b.sheet(cmp.Or(t.Called(), "table"))
	column, heads := 1, 1
	for i, c := range t.Columns {
		s.Text(column, 1, c.Heading(), b.bold)
		width := widthOf(c, t.Rows, i)
		s.Width(column, column, width)
		heads = max(heads, wrapped(c.Heading(), width))
		column++
		if c.Kind == document.Quantity {
			for _, part := range []string{"low", "high", "n"} {
				s.Text(column, 1, part, b.bold)
				s.Width(column, column, 8)
				column++
			}
		}
	}
	for i, r := range t.Rows {
		b.row(s, i+2, t.Columns, r)
	}
	high(s, 1, heads)
	s.Freeze(0, 1)
	s.Filter(column-1, len(t.Rows)+1)
}

// widthOf returns the width of column i of a table: that of its longest text.
func widthOf(c document.Column, rows []document.Row, i int) float64 {
	switch c.Kind {
	case document.Quantity:
		return 12
	case document.Count:
		return 7
	}
	longest := 0
	for _, r := range rows {
		longest = max(longest, len(r.Cells[i].Text))
	}
	return fitting(longest)
}

func (b *book) row(s *Sheet, row int, columns []document.Column, r document.Row) {
	column := 1
	for i, c := range columns {
		cell := r.Cells[i]
		switch {
		case c.Kind == document.Quantity:
			if q := cell.Quantity; q != nil {
				s.Number(column, row, q.Value/c.Scale, b.three)
				s.Number(column+1, row, q.Lo/c.Scale, b.three)
				s.Number(column+2, row, q.Hi/c.Scale, b.three)
				s.Number(column+3, row, float64(q.N), b.count)
			}
			column += 3
		case c.Kind == document.Count:
			if v, err := strconv.ParseFloat(cell.Text, 64); err == nil {
				s.Number(column, row, v, b.count)
			}
		case cell.Text != "":
			s.Text(column, row, cell.Text, 0)
		}
		column++
	}
}

func (b *book) algorithms(d *document.Document) {
	s := b.sheet("algorithms")
	for i, head := range []string{"kind", "name", "status", "post-quantum", "reason"} {
		s.Text(i+1, 1, head, b.bold)
		s.Width(i+1, i+1, []float64{9, 34, 12, 16, 110}[i])
	}
	for i, a := range d.Algorithms {
		pq := ""
		if a.PostQuantum {
			pq = "yes"
		}
		high(s, i+2, lines(a.Reason))
		for k, v := range []string{string(a.Kind), a.Name, document.Standing(a.Status), pq, a.Reason} {
			s.Text(k+1, i+2, v, b.wrap)
		}
	}
	s.Freeze(0, 1)
}

func (b *book) facts(name string, facts []document.Fact) {
	s := b.sheet(name)
	s.Width(1, 1, 30)
	s.Width(2, 2, 100)
	for i, f := range facts {
		s.Text(1, i+1, f.Name, 0)
		s.Text(2, i+1, f.Value, b.wrap)
		high(s, i+1, lines(f.Value))
	}
}

// raw lists the samples: there may be tens of thousands of rows.
func (b *book) raw(f *record.File) {
	s := b.sheet("raw")
	for i, longest := range longestRaw(f) {
		s.Text(i+1, 1, document.RawColumns[i], b.bold)
		s.Width(i+1, i+1, fitting(longest))
	}
	s.Freeze(0, 1)
	s.Rest(func(yield func([]Cell) bool) {
		for row := range document.Raw(f) {
			if !yield(b.cells(row)) {
				return
			}
		}
	})
}

// longestRaw returns the length of the longest value of each column.
func longestRaw(f *record.File) []int {
	longest := make([]int, len(document.RawColumns))
	for i, name := range document.RawColumns {
		longest[i] = len(name)
	}
	for row := range document.Raw(f) {
		for i, v := range row {
			switch v := v.(type) {
			case string:
				longest[i] = max(longest[i], len(v))
			case int64:
				longest[i] = max(longest[i], len(strconv.FormatInt(v, 10)))
			}
		}
	}
	return longest
}

// cells returns the cells of a row of samples. Integers have a format, because programs show those
// of nine digits with an exponent otherwise.
func (b *book) cells(row []any) (cells []Cell) {
	for i, v := range row {
		c := Cell{Column: i + 1, Style: b.integer}
		if i == 0 { // the trial, next to a text
			c.Style = b.count
		}
		switch v := v.(type) {
		case int64:
			c.Number = float64(v)
			cells = append(cells, c)
		case string:
			if c.Text, c.Style = v, 0; v != "" {
				cells = append(cells, c)
			}
		}
	}
	return cells
}
