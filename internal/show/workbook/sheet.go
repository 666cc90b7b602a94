package workbook

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"sshpace/internal/base/stats"
)

// Sheet is one sheet. Columns and rows count from 1.
type Sheet struct {
	name                 string
	rows                 map[int][]Cell
	heights              map[int]float64
	widths               []width
	frozenAcross, frozen int
	filter               area
	scale                *Scale
	scaled               area
	charts               []Chart
	last                 int
	rest                 iter.Seq[[]Cell]
}

// Cell is the content of a cell: a text if it is set, otherwise a number.
type Cell struct {
	Column int
	Text   string
	Number float64
	Style  int
}

type width struct {
	from, to int
	wide     float64
}

// Text puts a text into a cell, unless it is empty. Cells of a row come from left to right.
func (s *Sheet) Text(column, row int, text string, style int) {
	if text != "" {
		s.put(row, Cell{Column: column, Text: text, Style: style})
	}
}

// Number puts a number into a cell. Infinity leaves it empty.
func (s *Sheet) Number(column, row int, v float64, style int) {
	if !math.IsNaN(v) && !math.IsInf(v, 0) {
		s.put(row, Cell{Column: column, Number: v, Style: style})
	}
}

func (s *Sheet) put(row int, c Cell) {
	s.rows[row] = append(s.rows[row], c)
	s.last = max(s.last, row)
}

// Rest adds rows after all others, made as they are written.
func (s *Sheet) Rest(rows iter.Seq[[]Cell]) { s.rest = rows }

// Width makes columns wide, in characters. Columns come from left to right.
func (s *Sheet) Width(from, to int, characters float64) {
	s.widths = append(s.widths, width{from, to, characters})
}

// Height makes a row high, in points.
func (s *Sheet) Height(row int, points float64) { s.heights[row] = points }

// Freeze keeps the first columns and rows in sight.
func (s *Sheet) Freeze(columns, rows int) { s.frozenAcross, s.frozen = columns, rows }

// Filter gives the heads in the first row buttons that filter and sort.
func (s *Sheet) Filter(columns, rows int) { s.filter = area{1, 1, columns, rows} }

// Scale is three colors as RRGGBB, from the least value to the greatest. Middle is the value of the
// second; nil is the median.
type Scale struct {
	Least, Mid, Greatest string
	Middle               *float64
}

// Color colors the cells from (column, row) to (lastColumn, lastRow) by their values.
func (s *Sheet) Color(column, row, lastColumn, lastRow int, by Scale) {
	s.scale, s.scaled = &by, area{column, row, lastColumn, lastRow}
}

// Chart adds a chart of the sheet's cells.
func (s *Sheet) Chart(c Chart) { s.charts = append(s.charts, c) }

// area is a rectangle of cells.
type area struct{ column, row, lastColumn, lastRow int }

// in returns the area as other parts of the workbook name it.
func (s *Sheet) in(a area) string {
	name := func(column, row int) string { return fmt.Sprintf("$%s$%d", letters(column), row) }
	text := "'" + strings.ReplaceAll(s.name, "'", "''") + "'!" + name(a.column, a.row)
	if a.column == a.lastColumn && a.row == a.lastRow {
		return text
	}
	return text + ":" + name(a.lastColumn, a.lastRow)
}

func (a area) String() string {
	return letters(a.column) + strconv.Itoa(a.row) + ":" + letters(a.lastColumn) + strconv.Itoa(a.lastRow)
}

// letters returns the name of a column: A is 1, Z 26, AA 27.
func letters(column int) string { return stats.Letters(column - 1) }

// write writes the n-th sheet and its charts. Each fits the width of a page.
func (s *Sheet) write(p *parts, n int, charts *int) {
	p.typed(fmt.Sprintf("xl/worksheets/sheet%d.xml", n), "spreadsheetml.worksheet", func(w *writer) {
		w.printf(`<worksheet xmlns="%s" xmlns:r="%s"><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr>`, mainSpace, relSpace)
		s.writeView(w, n == 1)
		s.writeColumns(w)
		w.printf(`<sheetData>`)
		s.writeRows(w)
		w.printf(`</sheetData>`)
		if s.filter != (area{}) {
			w.printf(`<autoFilter ref="%s"/>`, s.filter)
		}
		s.writeScale(w)
		w.printf(`<pageSetup orientation="landscape" fitToWidth="1" fitToHeight="0"/>%s</worksheet>`, when(len(s.charts) > 0, `<drawing r:id="rId1"/>`))
	})
	if len(s.charts) > 0 {
		s.writeCharts(p, n, charts)
	}
}

func (s *Sheet) writeView(w *writer, first bool) {
	w.printf(`<sheetViews><sheetView workbookViewId="0"%s>`, when(first, ` tabSelected="1"`))
	if s.frozen > 0 {
		active := "bottomLeft"
		w.printf(`<pane `)
		if s.frozenAcross > 0 {
			active = "bottomRight"
			w.printf(`xSplit="%d" `, s.frozenAcross)
		}
		w.printf(`ySplit="%d" topLeftCell="%s%d" activePane="%s" state="frozen"/>`, s.frozen, letters(s.frozenAcross+1), s.frozen+1, active)
	}
	w.printf(`</sheetView></sheetViews><sheetFormatPr defaultRowHeight="15"/>`)
}

func (s *Sheet) writeColumns(w *writer) {
	if len(s.widths) == 0 {
		return
	}
	w.printf(`<cols>`)
	for _, c := range s.widths {
		w.printf(`<col min="%d" max="%d" width="%g" customWidth="1"/>`, c.from, c.to, c.wide)
	}
	w.printf(`</cols>`)
}

// maxRows is the most rows of a sheet (section 18.3.1.73).
const maxRows = 1 << 20

func (s *Sheet) writeRows(w *writer) {
	for _, row := range slices.Sorted(maps.Keys(s.rows)) {
		s.writeRow(w, row, s.rows[row])
	}
	if s.rest == nil {
		return
	}
	row := s.last
	for cells := range s.rest {
		if row++; row > maxRows {
			w.err = fmt.Errorf("more than %d rows are more than a sheet can hold", maxRows)
			return
		}
		s.writeRow(w, row, cells)
	}
}

func (s *Sheet) writeRow(w *writer, row int, cells []Cell) {
	w.printf(`<row r="%d"`, row)
	if points := s.heights[row]; points > 0 {
		w.printf(` ht="%g" customHeight="1"`, points)
	}
	w.printf(`>`)
	for _, c := range cells {
		c.write(w, row)
	}
	w.printf(`</row>`)
}

func (c Cell) write(w *writer, row int) {
	w.printf(`<c r="%s%d"`, letters(c.Column), row)
	if c.Style != 0 {
		w.printf(` s="%d"`, c.Style)
	}
	if c.Text != "" {
		w.printf(` t="inlineStr"><is><t xml:space="preserve">%s</t></is></c>`, escape(c.Text))
		return
	}
	w.printf(`><v>%s</v></c>`, strconv.FormatFloat(c.Number, 'f', -1, 64))
}

func (s *Sheet) writeScale(w *writer) {
	if s.scale == nil {
		return
	}
	middle := `<cfvo type="percentile" val="50"/>`
	if s.scale.Middle != nil {
		middle = fmt.Sprintf(`<cfvo type="num" val="%g"/>`, *s.scale.Middle)
	}
	w.printf(`<conditionalFormatting sqref="%s"><cfRule type="colorScale" priority="1"><colorScale><cfvo type="min"/>%s<cfvo type="max"/>`, s.scaled, middle)
	for _, color := range []string{s.scale.Least, s.scale.Mid, s.scale.Greatest} {
		w.printf(`<color rgb="FF%s"/>`, color)
	}
	w.printf(`</colorScale></cfRule></conditionalFormatting>`)
}
