package format

import (
	"io"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/report"
	"sshpace/internal/verdict/ways"
)

// Ways is the report of a record file that holds ways to move bytes.
type Ways struct {
	Records *record.File
	Output  Output
}

// Render writes the report.
func (x *Ways) Render(w io.Writer, f Format) error {
	results := ways.Of(x.Records)
	switch f.Name {
	case "json":
		return report.WaysJSON(w, results, x.Records)
	case Records:
		return store.Put(w, slices.Collect(x.Records.Records()))
	case "classic":
		return fault.Usage("leave --format classic out", "the result holds ways to move bytes, no combinations of algorithms")
	}
	return x.Output.renderDocument(w, f.Name, document.OfWays(results, x.Records), x.Records)
}

// WayChanges relates the ways of several files.
type WayChanges struct {
	*ways.Comparison
	Output *Output
}

// Render writes the comparison.
func (x *WayChanges) Render(w io.Writer, f Format) error {
	if f.Name == "json" {
		return report.WayChangesJSON(w, x.Comparison)
	}
	return x.Output.renderDocument(w, f.Name, document.OfWayChanges(x.Comparison), nil)
}

// Worst names the ways that are slower than in the first file by at least percent.
func (x *WayChanges) Worst(percent float64) []string {
	return x.Comparison.Worst(percent, document.WayLabel)
}
