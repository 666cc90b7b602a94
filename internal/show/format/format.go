// Package format writes reports in the format that the user asks for, and where.
package format

import (
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
)

// Format is one way to write a report.
type Format struct {
	Name    string
	Endings []string // of files; none: only by --format
	Binary  bool     // not for a terminal
}

// All is every format.
var All = []Format{
	{Name: "text", Endings: []string{".txt"}},
	{Name: "md", Endings: []string{".md", ".markdown"}},
	{Name: "csv", Endings: []string{".csv"}},
	{Name: "json", Endings: []string{".json"}},
	{Name: "html", Endings: []string{".html", ".htm"}},
	{Name: "xlsx", Endings: []string{".xlsx"}, Binary: true},
	{Name: "svg", Endings: []string{".svg"}},
	{Name: "png", Endings: []string{".png"}, Binary: true},
	{Name: "pdf", Endings: []string{".pdf"}, Binary: true},
	{Name: "classic"},
	{Name: Records},
}

// Records is the name of that of results. It is no format of an --out: that would write
// over a result.
const Records = "jsonl"

// named finds a format.
func named(name string) (Format, bool) {
	i := slices.IndexFunc(All, func(f Format) bool { return f.Name == name })
	if i < 0 {
		return Format{}, false
	}
	return All[i], true
}

// Ends refuses the name of a report for a file that holds something else, such as records, whose
// names end otherwise.
func Ends(path, ending string) error {
	if f, ok := ofFile(path); !ok || slices.Contains(f.Endings, ending) {
		return nil
	}
	right := strings.TrimSuffix(path, filepath.Ext(path)) + ending
	return fault.Usage("name it "+shell.Word(right)+"; reports of results are written by sshpace report --out "+shell.Word(path), "--out %s: what is written here is %s", path, ending)
}

func ofFile(path string) (Format, bool) {
	ending := strings.ToLower(filepath.Ext(path))
	i := slices.IndexFunc(All, func(f Format) bool { return slices.Contains(f.Endings, ending) })
	if i < 0 {
		return Format{}, false
	}
	return All[i], true
}
