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

// Methods is the report of a record file that holds transfer methods; all is for text, and commands
// lead on from it.
func Methods(f *record.File, all bool, commands document.Commands, o Output) Report {
	results := compare.MethodResults(f)
	return &result{
		holds: "transfer methods", records: f, output: o,
		json:     func(w io.Writer) error { return report.MethodsJSON(w, results, f) },
		document: func() *document.Document { return document.OfMethods(results, f, all, commands) },
	}
}

// Logins is the report of a record file that holds logins; all is for text.
func Logins(f *record.File, all bool, commands document.Commands, o Output) Report {
	r := findings.LoginOf(f)
	return &result{holds: "logins", records: f, output: o, json: r.JSON, document: func() *document.Document { return r.Document(f, all, commands) }}
}

// Limits is the report of a record file that holds nothing but measurements besides SSH: of a
// machine's limits; all is for text.
func Limits(f *record.File, all bool, commands document.Commands, o Output) Report {
	return &result{
		holds: "limits of a machine", records: f, output: o,
		json:     func(w io.Writer) error { return report.MachineJSON(w, f) },
		document: func() *document.Document { return document.OfMachine(f, all, commands) },
	}
}

// result is the report of one record file, or of several where records is nil, that does not
// rank combinations of algorithms.
type result struct {
	holds    string
	records  *record.File
	output   Output
	json     func(io.Writer) error
	document func() *document.Document
}

// Render writes the report.
func (x *result) Render(w io.Writer, f Format) error {
	switch f.Name {
	case "json":
		return x.json(w)
	case Records:
		return store.Put(w, slices.Collect(x.records.Records()))
	case "classic":
		return fault.Usage("leave out --format classic", "the result holds %s, no combinations of algorithms", x.holds)
	}
	return x.output.renderDocument(w, f.Name, x.document(), x.records)
}

// MethodChanges relates the methods of several files.
type MethodChanges struct {
	*compare.MethodComparison
	Output *Output
	files  []related
	gate   *compare.Gate // that was asked for; nil for none
}

// Render writes the comparison.
func (x *MethodChanges) Render(w io.Writer, f Format) error {
	if f.Name == "json" {
		return report.MethodChangesJSON(w, x.MethodComparison, x.gate)
	}
	return x.Output.renderDocument(w, f.Name, document.OfMethodChanges(x.MethodComparison), nil)
}

// Judge holds the methods against a limit, and makes that a part of the report.
func (x *MethodChanges) Judge(limit compare.Limit) *compare.Gate {
	x.gate = limit.Gate(x.lines())
	return x.gate
}

// lines are the speeds of the methods in each file after the first.
func (x *MethodChanges) lines() (lines []compare.Line) {
	for _, ch := range x.Changes {
		for k, r := range ch.Speed {
			l := compare.Line{Name: document.MethodLabel(ch.Method), File: x.Files[k+1], Together: r.Together}
			if r.Speed.Known() {
				l.Own = r.Speed.Interval()
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// More is what makes the comparison show a difference of so much, as a part.
func (x *MethodChanges) More(limit float64) string {
	return more(x.files, x.Shows(), x.Floor(), limit)
}
