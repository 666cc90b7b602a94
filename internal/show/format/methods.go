package format

import (
	"io"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/findings"
	"sshpace/internal/show/report"
)

// content is the content of a result without combinations of algorithms.
type content struct {
	name string
	show func(f *record.File, all bool, commands document.Commands, o Output) Report
}

// The kinds of content.
const (
	logins  = "logins"
	methods = "transfer methods"
	limits  = "limits of a machine"
	surveys = "the logins of a fleet"
)

// contentOf returns the content of a result; nothing for combinations.
func contentOf(f *record.File) content {
	switch {
	case len(f.Logins()) > 0:
		return content{logins, Logins}
	case len(f.Hosts) > 0:
		return content{name: surveys}
	case len(f.Methods()) > 0:
		return content{methods, Methods}
	case len(f.Measurements) > 0 && len(f.Samples) == 0:
		return content{limits, Limits}
	}
	return content{}
}

// Methods returns the report of a record file with transfer methods; all is for text, and commands
// continue from it.
func Methods(f *record.File, all bool, commands document.Commands, o Output) Report {
	results := compare.MethodResults(f)
	return &result{
		holds: methods, records: f, output: o,
		json:     func(w io.Writer) error { return report.MethodsJSON(w, results, f) },
		document: func() *document.Document { return document.OfMethods(results, f, all, commands) },
	}
}

// Logins returns the report of a record file with logins; all is for text.
func Logins(f *record.File, all bool, commands document.Commands, o Output) Report {
	r := findings.LoginOf(f)
	return &result{holds: logins, records: f, output: o, json: r.JSON, document: func() *document.Document { return r.Document(f, all, commands) }}
}

// Limits returns the report of a record file that holds only measurements besides SSH: a machine's
// limits; all is for text.
func Limits(f *record.File, all bool, commands document.Commands, o Output) Report {
	return &result{
		holds: limits, records: f, output: o,
		json:     func(w io.Writer) error { return report.MachineJSON(w, f) },
		document: func() *document.Document { return document.OfMachine(f, all || o.Limit != 0, commands) },
	}
}

// result is the report of one record file, or of several where records is nil.
type result struct {
	holds    string // missing from the classic lists
	records  *record.File
	output   Output
	json     func(io.Writer) error
	classic  func(io.Writer) error // nil: it has no such lists
	document func() *document.Document
}

// Render writes the report.
func (x *result) Render(w io.Writer, f Format) error {
	switch {
	case f.write != nil:
		return x.output.show(w, f, x.document(), x.records)
	case f.Name == Records:
		return store.Put(w, slices.Collect(x.records.Records()))
	case f.Name == classic && x.classic == nil:
		return fault.Usage("leave out --format classic", "the result holds %s, no combinations of algorithms", x.holds)
	case f.Name == classic:
		return x.classic(w)
	}
	return x.json(w)
}
