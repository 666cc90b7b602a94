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
