package sheet

import (
	"strconv"

	"github.com/xuri/excelize/v2"

	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// titles of the sheets, by the names of tables.
var titles = map[string]string{
	"bulk": "ciphers and MACs", "kex": "key exchange", "copies": "copies", "failed": "failed", "controls": "controls",
	"overall": "overall", "ciphers": "ciphers", "macs": "MACs", "cells": "cells", "machines": "machines",
	"ceilings": "ceilings", "measurements": "measurements", "figures": "figures",
}

func sheetTitle(name string) string {
	if t := titles[name]; t != "" {
		return t
	}
	return "table"
}

// summary is the first sheet: what came out and how far to trust it.
func (b *book) summary(d *document.Document) {
	s := b.sheet("summary")
	b.width(s, 1, 1, 26)
	b.width(s, 2, 2, 110)
	b.text(s, 1, 1, d.Title, b.title)
	row := 2
	say := func(name, value string) {
		b.text(s, 1, row, name, b.wrap)
		b.text(s, 2, row, value, b.wrap)
		b.height(s, row, lines(value))
		row++
	}
	for _, f := range d.Answer.Facts {
		say(f.Name, f.Value)
	}
	for _, line := range d.Lead {
		say("", line)
	}
	for _, f := range d.Quality {
		say(f.Name, f.Value)
	}
	for _, doubt := range d.Doubts {
		text := doubt.Text
		if doubt.Hint != "" {
			text += ". Hint: " + doubt.Hint
		}
		say("doubt", text)
	}
	for _, m := range d.Method {
		say("method", m)
	}
}

// table writes one table to a sheet of its own. A quantity takes four columns:
// the value in the unit of the heading, its interval, and what it rests on.
func (b *book) table(t document.Table) {
	s := b.sheet(sheetTitle(t.Name))
	column, heads := 1, 1
	for i, c := range t.Columns {
		b.text(s, column, 1, c.Heading(), b.bold)
		width := widthOf(c, t.Rows, i)
		b.width(s, column, column, width)
		heads = max(heads, wrapped(c.Heading(), width))
		column++
		if c.Kind == document.Quantity {
			for _, part := range []string{"low", "high", "n"} {
				b.text(s, column, 1, part, b.bold)
				b.width(s, column, column, 8)
				column++
			}
		}
	}
	for i, r := range t.Rows {
		b.row(s, i+2, t.Columns, r)
	}
	b.height(s, 1, heads)
	b.freeze(s, 1)
	b.do(func() error {
		last, err := excelize.CoordinatesToCellName(column-1, len(t.Rows)+1)
		if err != nil {
			return err
		}
		return b.file.AutoFilter(s, "A1:"+last, nil)
	})
	b.printable(s) // once more: the filter resets it
}

// widthOf is the width of column i of a table: that of its longest text.
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

func (b *book) row(s string, row int, columns []document.Column, r document.Row) {
	column := 1
	for i, c := range columns {
		cell := r.Cells[i]
		switch {
		case c.Kind == document.Quantity:
			if q := cell.Quantity; q != nil {
				b.number(s, column, row, q.Value/c.Scale, b.three)
				b.number(s, column+1, row, q.Lo/c.Scale, b.three)
				b.number(s, column+2, row, q.Hi/c.Scale, b.three)
				b.number(s, column+3, row, float64(q.N), b.count)
			}
			column += 3
		case c.Kind == document.Count:
			if v, err := strconv.ParseFloat(cell.Text, 64); err == nil {
				b.number(s, column, row, v, b.count)
			}
		case cell.Text != "":
			b.text(s, column, row, cell.Text, 0)
		}
		column++
	}
}

func (b *book) algorithms(d *document.Document) {
	s := b.sheet("algorithms")
	for i, head := range []string{"kind", "name", "status", "post-quantum", "reason"} {
		b.text(s, i+1, 1, head, b.bold)
		b.width(s, i+1, i+1, []float64{9, 34, 12, 16, 110}[i])
	}
	for i, a := range d.Algorithms {
		pq := ""
		if a.PostQuantum {
			pq = "yes"
		}
		b.height(s, i+2, lines(a.Reason))
		for k, v := range []string{string(a.Kind), a.Name, document.Standing(a.Status), pq, a.Reason} {
			b.text(s, k+1, i+2, v, b.wrap)
		}
	}
	b.freeze(s, 1)
}

func (b *book) facts(name string, facts []document.Fact) {
	s := b.sheet(name)
	b.width(s, 1, 1, 30)
	b.width(s, 2, 2, 100)
	for i, f := range facts {
		b.text(s, 1, i+1, f.Name, 0)
		b.text(s, 2, i+1, f.Value, b.wrap)
		b.height(s, i+1, lines(f.Value))
	}
}

// raw streams the samples: there may be tens of thousands of rows.
func (b *book) raw(f *record.File) {
	s := b.sheet("raw")
	b.do(func() error {
		stream, err := b.file.NewStreamWriter(s)
		if err != nil {
			return err
		}
		head := make([]any, len(document.RawColumns))
		for i, name := range document.RawColumns {
			head[i] = excelize.Cell{StyleID: b.bold, Value: name}
		}
		for i, longest := range longestRaw(f) {
			if err := stream.SetColWidth(i+1, i+1, fitting(longest)); err != nil {
				return err
			}
		}
		if err := stream.SetPanes(&excelize.Panes{Freeze: true, YSplit: 1, TopLeftCell: "A2", ActivePane: "bottomLeft"}); err != nil {
			return err
		}
		if err := stream.SetRow("A1", head); err != nil {
			return err
		}
		line := 2
		for row := range document.Raw(f) {
			at, err := excelize.CoordinatesToCellName(1, line)
			if err != nil {
				return err // beyond what a sheet can hold
			}
			if err := stream.SetRow(at, b.whole(row)); err != nil {
				return err
			}
			line++
		}
		return stream.Flush()
	})
}

// longestRaw is how many characters the longest value of each column has.
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

// whole gives the integers of a row a format, or programs show those of nine
// digits with an exponent.
func (b *book) whole(row []any) []any {
	for i, v := range row {
		n, ok := v.(int64)
		switch {
		case ok && i == 0: // the trial, beside a text
			row[i] = excelize.Cell{StyleID: b.count, Value: n}
		case ok:
			row[i] = excelize.Cell{StyleID: b.integer, Value: n}
		}
	}
	return row
}
