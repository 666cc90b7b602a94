// Package sheet writes a report as an xlsx workbook: its tables with numbers
// that can be calculated with, the matrix with a colour scale, native charts,
// and the raw samples.
//
// Text is stored as text: no cell of a workbook is ever a formula, whatever a host
// calls itself.
package sheet

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/xuri/excelize/v2"

	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// Write writes the workbook. f may be nil: then there are no raw samples.
func Write(w io.Writer, d *document.Document, f *record.File) error {
	file := excelize.NewFile()
	defer file.Close()
	b := &book{file: file, used: map[string]bool{}}
	b.styles()
	b.summary(d)
	for _, t := range d.Tables {
		b.table(t)
	}
	for _, c := range d.Charts {
		if c.Shape == document.Heat {
			b.matrix(c)
		}
	}
	b.charts(d)
	b.algorithms(d)
	b.facts("environment", d.Environment)
	if f != nil {
		b.raw(f)
	}
	if b.err != nil {
		return fmt.Errorf("build the workbook: %w", b.err)
	}
	return file.Write(w)
}

// book is a workbook being filled. After the first error it does nothing more.
type book struct {
	file    *excelize.File
	used    map[string]bool // names of sheets
	err     error
	bold    int
	wrap    int
	three   int // number format: three significant digits
	integer int // number format: all digits, no exponent
	count   int // centred: not to run into the text beside it
	title   int
}

func (b *book) do(f func() error) {
	if b.err == nil {
		b.err = f()
	}
}

func (b *book) style(s *excelize.Style) (id int) {
	b.do(func() (err error) { id, err = b.file.NewStyle(s); return err })
	return id
}

func (b *book) styles() {
	const family = "Calibri" // that of cells without a style
	digits := "[>=99.95]0;[>=9.995]0.0;0.000"
	b.bold = b.style(&excelize.Style{Font: &excelize.Font{Bold: true, Family: family, Size: 11}, Fill: excelize.Fill{Type: "pattern", Pattern: 1, Color: []string{"EEF1F4"}}, Alignment: &excelize.Alignment{WrapText: true, Vertical: "top"}})
	b.wrap = b.style(&excelize.Style{Alignment: &excelize.Alignment{WrapText: true, Vertical: "top"}})
	b.three = b.style(&excelize.Style{CustomNumFmt: &digits})
	b.integer = b.style(&excelize.Style{NumFmt: 1})
	b.count = b.style(&excelize.Style{NumFmt: 1, Alignment: &excelize.Alignment{Horizontal: "center"}})
	b.title = b.style(&excelize.Style{Font: &excelize.Font{Bold: true, Family: family, Size: 15}})
}

// sheet makes a sheet and returns its name, which is unique. Names are ours,
// never a host's.
func (b *book) sheet(name string) string {
	for n := 2; b.used[name]; n++ {
		name = fmt.Sprintf("%s %d", name, n)
	}
	first := len(b.used) == 0
	b.used[name] = true
	b.do(func() error {
		if first {
			return b.file.SetSheetName("Sheet1", name)
		}
		_, err := b.file.NewSheet(name)
		return err
	})
	b.printable(name)
	return name
}

// printable fits a sheet to the width of a page.
func (b *book) printable(sheet string) {
	fit, landscape, one, any := true, "landscape", 1, 0
	b.do(func() error { return b.file.SetSheetProps(sheet, &excelize.SheetPropsOptions{FitToPage: &fit}) })
	b.do(func() error {
		return b.file.SetPageLayout(sheet, &excelize.PageLayoutOptions{Orientation: &landscape, FitToWidth: &one, FitToHeight: &any})
	})
}

// text stores a string as a string: SetCellStr never makes a formula of it.
func (b *book) text(sheet string, column, row int, s string, style int) {
	b.do(func() error {
		at, err := excelize.CoordinatesToCellName(column, row)
		if err != nil {
			return err
		}
		if err := b.file.SetCellStr(sheet, at, s); err != nil || style == 0 {
			return err
		}
		return b.file.SetCellStyle(sheet, at, at, style)
	})
}

func (b *book) number(sheet string, column, row int, v float64, style int) {
	b.do(func() error {
		at, err := excelize.CoordinatesToCellName(column, row)
		if err != nil {
			return err
		}
		if err := b.file.SetCellFloat(sheet, at, v, -1, 64); err != nil || style == 0 {
			return err
		}
		return b.file.SetCellStyle(sheet, at, at, style)
	})
}

func (b *book) width(sheet string, from, to int, w float64) {
	b.do(func() error {
		a, err := excelize.ColumnNumberToName(from)
		if err != nil {
			return err
		}
		z, err := excelize.ColumnNumberToName(to)
		if err != nil {
			return err
		}
		return b.file.SetColWidth(sheet, a, z, w)
	})
}

// height makes room for lines of text: not every program does so by itself.
func (b *book) height(sheet string, row, lines int) {
	b.do(func() error { return b.file.SetRowHeight(sheet, row, float64(15*lines)) })
}

// lines is how many lines a wrapped text takes in the wide column.
func lines(s string) int { return 1 + len(s)/100 }

// fitting is the width of a column whose longest text has so many characters.
func fitting(characters int) float64 { return float64(min(max(characters, 8), 90)) + 2 }

// wrapped is how many lines a heading takes at a width. Bold letters are wide,
// and programs break at spaces and hyphens only.
func wrapped(head string, width float64) int {
	const bold = 1.2
	count, used := 1, 0.0
	for _, word := range strings.SplitAfter(strings.ReplaceAll(head, "-", "- "), " ") {
		size := bold * float64(utf8.RuneCountInString(word))
		if used > 0 && used+size > width {
			count, used = count+1, 0
		}
		used += size
	}
	return count
}

// freeze keeps the first rows in sight.
func (b *book) freeze(sheet string, rows int) {
	b.do(func() error {
		return b.file.SetPanes(sheet, &excelize.Panes{Freeze: true, YSplit: rows, TopLeftCell: fmt.Sprintf("A%d", rows+1), ActivePane: "bottomLeft"})
	})
}
