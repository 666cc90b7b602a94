// Package booktest reads workbooks for tests, with nothing of the package that writes them.
package booktest

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Book is a workbook.
type Book struct {
	Parts  map[string]string // the files in it, each of them well-formed
	Sheets []*Sheet
	Areas  []string // the cells that defined names refer to
	styles styles
}

// Sheet is one sheet as its part holds it.
type Sheet struct {
	Name string `xml:"-"`
	Pane struct {
		Columns int    `xml:"xSplit,attr"`
		Rows    int    `xml:"ySplit,attr"`
		State   string `xml:"state,attr"`
	} `xml:"sheetViews>sheetView>pane"`
	Columns []struct {
		First int     `xml:"min,attr"`
		Last  int     `xml:"max,attr"`
		Width float64 `xml:"width,attr"`
	} `xml:"cols>col"`
	Lines  []line `xml:"sheetData>row"`
	Scales []struct {
		Area string `xml:"sqref,attr"`
	} `xml:"conditionalFormatting"`
}

// line is a row that is not empty.
type line struct {
	Row    int     `xml:"r,attr"`
	Height float64 `xml:"ht,attr"`
	Cells  []Cell  `xml:"c"`
}

// Cell is a cell that is not empty.
type Cell struct {
	At      string  `xml:"r,attr"`
	Style   int     `xml:"s,attr"`
	Formula *string `xml:"f"`
	Number  string  `xml:"v"`
	Text    string  `xml:"is>t"`
}

// Look is the style of a cell.
type Look struct {
	FormatID int
	Format   string // as the workbook defines it; "" for formats that programs know
	Bold     bool
	Size     float64
	Pattern  string // of its fill
}

// styles are those of a workbook, each by the numbers of its parts.
type styles struct {
	Formats []struct {
		ID   int    `xml:"numFmtId,attr"`
		Code string `xml:"formatCode,attr"`
	} `xml:"numFmts>numFmt"`
	Fonts []struct {
		Bold *struct{} `xml:"b"`
		Size struct {
			Points float64 `xml:"val,attr"`
		} `xml:"sz"`
	} `xml:"fonts>font"`
	Fills []struct {
		Pattern struct {
			Kind string `xml:"patternType,attr"`
		} `xml:"patternFill"`
	} `xml:"fills>fill"`
	Cells []struct {
		Format int `xml:"numFmtId,attr"`
		Font   int `xml:"fontId,attr"`
		Fill   int `xml:"fillId,attr"`
	} `xml:"cellXfs>xf"`
}

// Read reads a workbook, all of whose parts must be well-formed.
func Read(t testing.TB, data []byte) *Book {
	t.Helper()
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	b := &Book{Parts: map[string]string{}}
	for _, file := range archive.File {
		b.Parts[file.Name] = content(t, file)
	}
	var list struct {
		Sheets []struct {
			Name string `xml:"name,attr"`
			ID   string `xml:"http://schemas.openxmlformats.org/officeDocument/2006/relationships id,attr"`
		} `xml:"sheets>sheet"`
		Areas []string `xml:"definedNames>definedName"`
	}
	var relations struct {
		All []struct {
			ID     string `xml:"Id,attr"`
			Target string `xml:"Target,attr"`
		} `xml:"Relationship"`
	}
	b.parse(t, "xl/workbook.xml", &list)
	b.parse(t, "xl/_rels/workbook.xml.rels", &relations)
	b.parse(t, "xl/styles.xml", &b.styles)
	b.Areas = list.Areas
	targets := map[string]string{}
	for _, r := range relations.All {
		targets[r.ID] = path.Join("xl", r.Target)
	}
	for _, s := range list.Sheets {
		sheet := &Sheet{Name: s.Name}
		b.parse(t, targets[s.ID], sheet)
		b.Sheets = append(b.Sheets, sheet)
	}
	return b
}

// content returns a file of the archive, which must be well-formed XML.
func content(t testing.TB, file *zip.File) string {
	t.Helper()
	in, err := file.Open()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	decoder := xml.NewDecoder(bytes.NewReader(data))
	for err == nil {
		_, err = decoder.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("%s: %v", file.Name, err)
	}
	return string(data)
}

func (b *Book) parse(t testing.TB, name string, into any) {
	t.Helper()
	text, ok := b.Parts[name]
	if !ok {
		t.Fatalf("the workbook has no part %q", name)
	}
	if err := xml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// Sheet returns the sheet of a name.
func (b *Book) Sheet(t testing.TB, name string) *Sheet {
	t.Helper()
	i := slices.IndexFunc(b.Sheets, func(s *Sheet) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("the workbook has no sheet %q", name)
	}
	return b.Sheets[i]
}

// Look returns the style of a cell.
func (b *Book) Look(c Cell) Look {
	of := b.styles.Cells[c.Style]
	font := b.styles.Fonts[of.Font]
	out := Look{FormatID: of.Format, Bold: font.Bold != nil, Size: font.Size.Points, Pattern: b.styles.Fills[of.Fill].Pattern.Kind}
	for _, f := range b.styles.Formats {
		if f.ID == of.Format {
			out.Format = f.Code
		}
	}
	return out
}

// Cell returns the cell at such as B3; the zero value if it is empty.
func (s *Sheet) Cell(at string) Cell {
	for _, l := range s.Lines {
		for _, c := range l.Cells {
			if c.At == at {
				return c
			}
		}
	}
	return Cell{}
}

// Rows returns the values of all cells as they are stored, row by row.
func (s *Sheet) Rows() (rows [][]string) {
	for _, l := range s.Lines {
		for len(rows) < l.Row {
			rows = append(rows, nil)
		}
		row := &rows[l.Row-1]
		for _, c := range l.Cells {
			for len(*row) < c.column() {
				*row = append(*row, "")
			}
			(*row)[c.column()-1] = c.Value()
		}
	}
	return rows
}

// Width returns the width of a column, which counts from 1, in characters.
func (s *Sheet) Width(column int) float64 {
	for _, c := range s.Columns {
		if c.First <= column && column <= c.Last {
			return c.Width
		}
	}
	return 0
}

// Height returns the height of a row, which counts from 1, in points.
func (s *Sheet) Height(row int) float64 {
	for _, l := range s.Lines {
		if l.Row == row {
			return l.Height
		}
	}
	return 0
}

// column returns the number of a cell's column: A is 1, AA 27.
func (c Cell) column() (n int) {
	for _, letter := range strings.TrimRight(c.At, "0123456789") {
		n = 26*n + int(letter-'A') + 1
	}
	return n
}

// escaped are characters as section 22.4.2.4 of ECMA-376 writes them.
var escaped = regexp.MustCompile(`_x([0-9A-Fa-f]{4})_`)

// Value returns the number, or the text, of a cell.
func (c Cell) Value() string {
	if c.Text == "" {
		return c.Number
	}
	return escaped.ReplaceAllStringFunc(c.Text, func(s string) string {
		code, _ := strconv.ParseUint(s[2:6], 16, 32) // of four digits
		return string(rune(code))
	})
}
