package format

import (
	"io"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/findings"
)

// Logins is the report of a record file that holds logins.
type Logins struct {
	Records *record.File
	Output  Output
	All     bool // text: every kind of login
}

// Render writes the report.
func (x *Logins) Render(w io.Writer, f Format) error {
	switch f.Name {
	case "json":
		return findings.LoginOf(x.Records).JSON(w)
	case Records:
		return store.Put(w, slices.Collect(x.Records.Records()))
	}
	if f.Name == "classic" {
		return fault.Usage("leave --format classic out", "the result holds logins, no combinations of algorithms")
	}
	return x.Output.renderDocument(w, f.Name, findings.LoginOf(x.Records).Document(x.Records, x.All), x.Records)
}

// LoginChanges relates the logins of several files.
type LoginChanges struct {
	*findings.LoginComparison
	Output Output
}

// Render writes the comparison.
func (x LoginChanges) Render(w io.Writer, f Format) error {
	if f.Name == "json" {
		return x.JSON(w)
	}
	return x.Output.renderDocument(w, f.Name, x.Document(), nil)
}
