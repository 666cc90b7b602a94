// Package workbook writes spreadsheets in Office Open XML (ECMA-376, part 1): text, numbers,
// styles, a color scale and bar charts. It has no formulas: a text is stored as text, whatever it
// looks like and whatever a host calls itself. A report becomes one: its tables with numbers that
// can be calculated with, the matrix, native charts, and the raw samples.
package workbook

import (
	"archive/zip"
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"
)

// Book is a workbook. A cell's style 0 is the plain one.
type Book struct {
	sheets []*Sheet
	styles styles
}

// Sheet adds a sheet. Names are unique, have up to 31 characters and none of []:*?/\ (the limits of
// programs).
func (b *Book) Sheet(name string) *Sheet {
	s := &Sheet{name: name, rows: map[int][]Cell{}, heights: map[int]float64{}}
	b.sheets = append(b.sheets, s)
	return s
}

// Style makes a style for cells.
func (b *Book) Style(s Style) int { return b.styles.add(s) }

// Namespaces (ECMA-376 annex A).
const (
	mainSpace    = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
	relSpace     = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
	packageSpace = "http://schemas.openxmlformats.org/package/2006/"
	drawingSpace = "http://schemas.openxmlformats.org/drawingml/2006/"
)

const head = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?>` + "\n"

// Write writes the workbook.
func (b *Book) Write(w io.Writer) error {
	p := &parts{zip: zip.NewWriter(w)}
	p.add("_rels/.rels", func(w *writer) {
		w.relations([]relation{{"officeDocument", "xl/workbook.xml"}})
	})
	p.typed("xl/styles.xml", "spreadsheetml.styles", b.styles.write)
	charts := 0
	for i, s := range b.sheets {
		s.write(p, i+1, &charts)
	}
	p.typed("xl/workbook.xml", "spreadsheetml.sheet.main", b.writeList)
	p.add("xl/_rels/workbook.xml.rels", b.writeRelations)
	p.add("[Content_Types].xml", p.writeTypes)
	if p.err != nil {
		return p.err
	}
	return p.zip.Close()
}

// writeList writes the sheets' names, and the filtered ranges, which some programs look for under
// this name only.
func (b *Book) writeList(w *writer) {
	w.printf(`<workbook xmlns="%s" xmlns:r="%s"><sheets>`, mainSpace, relSpace)
	for i, s := range b.sheets {
		w.printf(`<sheet name="%s" sheetId="%d" r:id="rId%d"/>`, escape(s.name), i+1, i+1)
	}
	w.printf(`</sheets><definedNames>`)
	for i, s := range b.sheets {
		if s.filter != (area{}) {
			w.printf(`<definedName name="_xlnm._FilterDatabase" localSheetId="%d" hidden="1">%s</definedName>`, i, escape(s.in(s.filter)))
		}
	}
	w.printf(`</definedNames></workbook>`)
}

func (b *Book) writeRelations(w *writer) {
	var all []relation
	for i := range b.sheets {
		all = append(all, relation{"worksheet", fmt.Sprintf("worksheets/sheet%d.xml", i+1)})
	}
	w.relations(append(all, relation{"styles", "styles.xml"}))
}

// parts are the files in a workbook. After the first error they do nothing more.
type parts struct {
	zip   *zip.Writer
	types []string // overrides, as XML
	err   error
}

// add writes a file.
func (p *parts) add(name string, write func(*writer)) {
	if p.err != nil {
		return
	}
	file, err := p.zip.Create(name)
	if err != nil {
		p.err = err
		return
	}
	w := &writer{Writer: bufio.NewWriter(file)}
	w.printf(head)
	write(w)
	p.err = w.Flush()
	if w.err != nil {
		p.err = w.err
	}
}

// typed writes a file of a kind that must be declared to programs.
func (p *parts) typed(name, kind string, write func(*writer)) {
	p.types = append(p.types, fmt.Sprintf(`<Override PartName="/%s" ContentType="application/vnd.openxmlformats-officedocument.%s+xml"/>`, name, kind))
	p.add(name, write)
}

func (p *parts) writeTypes(w *writer) {
	w.printf(`<Types xmlns="%scontent-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>`, packageSpace)
	w.printf(`<Default Extension="xml" ContentType="application/xml"/>%s</Types>`, strings.Join(p.types, ""))
}

// relation says why a file needs another one; the n-th is called rIdN.
type relation struct{ kind, target string }

// writer writes XML. Errors of writing are kept for Flush.
type writer struct {
	*bufio.Writer
	err error // of the content
}

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(w.Writer, format, args...) }

func (w *writer) relations(all []relation) {
	w.printf(`<Relationships xmlns="%srelationships">`, packageSpace)
	for i, r := range all {
		w.printf(`<Relationship Id="rId%d" Type="%s/%s" Target="%s"/>`, i+1, relSpace, r.kind, r.target)
	}
	w.printf(`</Relationships>`)
}

// maxText is the most text of a cell, in UTF-16 units.
const maxText = 32767

// escape turns text into XML. Text that looks like one of the escapes of section 22.4.2.4, such as
// _x0041_, is escaped in the same way; characters that XML does not have become U+FFFD.
func escape(s string) string {
	var out strings.Builder
	units := 0
	for i, r := range s {
		if units += max(1, utf16.RuneLen(r)); units > maxText {
			break
		}
		switch {
		case r == '&':
			out.WriteString("&amp;")
		case r == '<':
			out.WriteString("&lt;")
		case r == '>':
			out.WriteString("&gt;")
		case r == '"':
			out.WriteString("&quot;")
		case r == '\r':
			out.WriteString("&#13;")
		case r == '_' && looksEscaped(s[i:]):
			out.WriteString("_x005F_")
		case r < ' ' && r != '\t' && r != '\n', r == 0xFFFE, r == 0xFFFF:
			out.WriteRune('\uFFFD')
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

func looksEscaped(s string) bool {
	return len(s) >= 7 && s[1] == 'x' && s[6] == '_' && strings.Trim(s[2:6], "0123456789abcdefABCDEF") == ""
}
