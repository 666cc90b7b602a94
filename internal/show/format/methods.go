package format

import (
	"io"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/bench/compare"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/report"
)

// Methods is the report of a record file that holds transfer methods.
type Methods struct {
	Records *record.File
	Output  Output
	All     bool // text: all that was not measured
}

// Render writes the report.
func (x *Methods) Render(w io.Writer, f Format) error {
	results := compare.MethodResults(x.Records)
	switch f.Name {
	case "json":
		return report.MethodsJSON(w, results, x.Records)
	case Records:
		return store.Put(w, slices.Collect(x.Records.Records()))
	case "classic":
		return fault.Usage("leave --format classic out", "the result holds transfer methods, no combinations of algorithms")
	}
	return x.Output.renderDocument(w, f.Name, document.OfMethods(results, x.Records, x.All), x.Records)
}

// MethodChanges relates the methods of several files.
type MethodChanges struct {
	*compare.MethodComparison
	Output *Output
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
			if r.Known() {
				l.Own = r.Interval()
			}
			lines = append(lines, l)
		}
	}
	return lines
}

// More is what makes the comparison show a difference of so much, as a part.
func (x *MethodChanges) More(limit float64) string {
	return more("measure both with more --rounds", x.Floor(), limit)
}
