package workbook

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sshpace/internal/record"
	"sshpace/internal/show/document"
)

// Write writes the workbook. f may be nil: then there are no raw samples.
func Write(w io.Writer, d *document.Document, f *record.File) error {
	b := newBook()
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
	if err := b.Book.Write(w); err != nil {
		return fmt.Errorf("write the workbook: %w", err)
	}
	return nil
}

// book is a workbook being filled.
type book struct {
	Book
	used    map[string]bool // names of sheets
	bold    int
	wrap    int
	three   int // number format: three significant digits
	integer int // number format: all digits, no exponent
	count   int // centered: not to run into the neighboring text
	title   int
}

func newBook() *book {
	b := &book{used: map[string]bool{}}
	b.bold = b.Style(Style{Bold: true, Fill: "EEF1F4", Wrap: true})
	b.wrap = b.Style(Style{Wrap: true})
	b.three = b.Style(Style{Format: "[>=99.95]0;[>=9.995]0.0;0.000"})
	b.integer = b.Style(Style{Format: "0"})
	b.count = b.Style(Style{Format: "0", Center: true})
	b.title = b.Style(Style{Bold: true, Size: 15})
	return b
}

// sheet makes a sheet whose name is unique. Names are ours, never a host's.
func (b *book) sheet(name string) *Sheet {
	for n := 2; b.used[name]; n++ {
		name = fmt.Sprintf("%s %d", name, n)
	}
	b.used[name] = true
	return b.Sheet(name)
}

// high makes room for lines of text: not every program does so by itself.
func high(s *Sheet, row, lines int) { s.Height(row, float64(15*lines)) }

// lines counts the lines of a wrapped text in the wide column.
func lines(s string) int { return 1 + len(s)/100 }

// fitting returns the width of a column whose longest text has that many characters.
func fitting(characters int) float64 { return float64(min(max(characters, 8), 90)) + 2 }

// wrapped counts the lines of a heading at a width. Bold letters are wide, and programs break at
// spaces and hyphens only.
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
