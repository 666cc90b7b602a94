// Package format writes reports in the wanted format, to the wanted place.
package format

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/record"
	"sshpace/internal/show/document"
	"sshpace/internal/show/page"
	"sshpace/internal/show/picture"
	"sshpace/internal/show/report"
	"sshpace/internal/show/workbook"
)

// Format is one way to write a report.
type Format struct {
	Name    string
	Endings []string // of files, the usual one first; none: only by --format
	Is      string   // description of such a file
	Parts   Parts    // that --only picks from
	Text    bool     // for a terminal, where several reports may follow each other
	Binary  bool     // not for a terminal
	Alone   bool     // of one result only, not of a comparison
	write   writer   // nil: it does not render a document
}

// Parts are the parts of a document that some formats show, by name.
type Parts uint8

// The parts. A format without any shows the whole document.
const (
	Tables Parts = iota + 1
	Charts
)

// writer writes a document; records is its source if that is one result; only names the wanted
// parts.
type writer func(w io.Writer, d *document.Document, records *record.File, only []string) error

// Names of formats that do not render a document.
const (
	classic = "classic"
	Records = "jsonl" // results; no format of an --out: that would write over one
)

// All returns the formats. Help, completion, errors and Render use this table.
func All() []Format {
	return []Format{
		{Name: "text", Endings: []string{".txt"}, Is: "text for people", Text: true, write: whole(report.Text)},
		{Name: "md", Endings: []string{".md", ".markdown"}, Is: "tables to paste", Parts: Tables, Text: true, write: parts(report.Markdown)},
		{Name: "csv", Endings: []string{".csv"}, Is: "tables to paste", Parts: Tables, write: parts(report.CSV)},
		{Name: "tex", Endings: []string{".tex"}, Is: "tables for LaTeX", Parts: Tables, write: parts(report.LaTeX)},
		{Name: "json", Endings: []string{".json"}, Is: "all figures for programs", Text: true},
		{Name: "html", Endings: []string{".html", ".htm"}, Is: "a page with interactive charts that needs no network", write: whole(page.Write)},
		{Name: "xlsx", Endings: []string{".xlsx"}, Is: "a workbook with the raw samples", Binary: true, write: book},
		{Name: "svg", Endings: []string{".svg"}, Is: "pictures", Parts: Charts, write: parts(picture.SVG)},
		{Name: "png", Endings: []string{".png"}, Is: "pictures", Parts: Charts, Binary: true, write: parts(picture.PNG)},
		{Name: "pdf", Endings: []string{".pdf"}, Is: "pictures", Parts: Charts, Binary: true, write: parts(picture.PDF)},
		{Name: classic, Text: true, Alone: true},
		{Name: Records, Alone: true},
	}
}

// whole adapts the writer of a format that shows the whole document.
func whole(write func(io.Writer, *document.Document) error) writer {
	return func(w io.Writer, d *document.Document, _ *record.File, _ []string) error { return write(w, d) }
}

// parts adapts the writer of a format that shows parts by name. Other names in --only are a
// mistake.
func parts(write func(io.Writer, *document.Document, ...string) error) writer {
	return func(w io.Writer, d *document.Document, _ *record.File, only []string) error {
		err := write(w, d, only...)
		if errors.Is(err, document.ErrNoSuch) {
			return fault.Usage("choose one of them with --only", "%s", err)
		}
		return err
	}
}

func book(w io.Writer, d *document.Document, records *record.File, _ []string) error {
	return workbook.Write(w, d, records)
}

// Named finds a format; false if there is none.
func Named(name string) (Format, bool) {
	return find(func(f Format) bool { return f.Name == name })
}

// ofFile finds the format of a file by its ending; false if that is not one of a format.
func ofFile(path string) (Format, bool) {
	ending := strings.ToLower(filepath.Ext(path))
	return find(func(f Format) bool { return slices.Contains(f.Endings, ending) })
}

func find(is func(Format) bool) (Format, bool) {
	for _, f := range All() {
		if is(f) {
			return f, true
		}
	}
	return Format{}, false
}

// With returns the names of formats with such parts.
func With(parts Parts) string {
	var names []string
	for _, f := range All() {
		if f.Parts == parts {
			names = append(names, f.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Files lists the kinds of files by their endings: "text for people (.txt), tables to paste (.md,
// .csv), ...".
func Files() string {
	var kinds []string
	endings := map[string][]string{} // by kind
	for _, f := range All() {
		if len(f.Endings) > 0 {
			if endings[f.Is] == nil {
				kinds = append(kinds, f.Is)
			}
			endings[f.Is] = append(endings[f.Is], f.Endings[0])
		}
	}
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%s (%s)", kind, strings.Join(endings[kind], ", "))
	}
	return strings.Join(kinds, ", ")
}

// Ends refuses the name of a report for a file with other content, such as records, whose names end
// otherwise.
func Ends(path, ending string) error {
	if f, ok := ofFile(path); !ok || slices.Contains(f.Endings, ending) {
		return nil
	}
	right := strings.TrimSuffix(path, filepath.Ext(path)) + ending
	return fault.Usage("name it "+shell.Word(right)+"; reports of results are written by sshpace report --out "+shell.Word(path), "--out %s: the output is %s", path, ending)
}
