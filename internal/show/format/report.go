package format

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/advise"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/page"
	"sshpace/internal/show/picture"
	"sshpace/internal/show/report"
	"sshpace/internal/show/workbook"
)

// Report writes one report in a format.
type Report interface {
	Render(w io.Writer, f Format) error
}

// renderDocument writes the formats that a ranking and a comparison share.
func (o *Output) renderDocument(w io.Writer, name string, d *document.Document, records *record.File) error {
	switch name {
	case "text":
		return report.Text(w, d)
	case "md":
		return misnamed(report.Markdown(w, d.Head(o.Limit), o.parts(d.TableNames(), d.ChartNames())...))
	case "csv":
		return misnamed(report.CSV(w, d.Head(o.Limit), o.parts(d.TableNames(), d.ChartNames())...))
	case "html":
		return page.Write(w, d)
	case "xlsx":
		return workbook.Write(w, d, records)
	case "svg":
		return misnamed(picture.SVG(w, d, o.parts(d.ChartNames(), d.TableNames())...))
	case "png":
		return misnamed(picture.PNG(w, d, o.parts(d.ChartNames(), d.TableNames())...))
	case "pdf":
		return misnamed(picture.PDF(w, d, o.parts(d.ChartNames(), d.TableNames())...))
	}
	return fmt.Errorf("no writer for the format %s", name)
}

// parts are the names of --only for a format that shows these parts, where another shows
// the others: a name that only the other has is left to it, if any is left.
func (o *Output) parts(own, others []string) []string {
	left := slices.DeleteFunc(slices.Clone(o.Only), func(name string) bool { return !slices.Contains(own, name) && slices.Contains(others, name) })
	if len(left) == 0 {
		return o.Only
	}
	return left
}

// misnamed makes a usage error of a name of --only that the document has not.
func misnamed(err error) error {
	if errors.Is(err, document.ErrNoSuch) {
		return fault.Usage("choose one of them with --only", "%s", err)
	}
	return err
}

// Ranking is the report of one record file.
type Ranking struct {
	Ranking  *rank.Ranking
	Records  *record.File
	Classic  report.ClassicOptions
	Output   Output
	Options  document.Options
	document *document.Document
}

// Render writes the report.
func (x *Ranking) Render(w io.Writer, f Format) error {
	if x.Options.Choice == nil {
		x.Options.Choice = advise.Of(x.Ranking, advise.Options{})
	}
	switch f.Name {
	case "json":
		return report.JSON(w, x.Ranking, x.Options)
	case Records:
		return store.Put(w, slices.Collect(x.Records.Records()))
	case "classic":
		answer := document.AnswerOf(x.Ranking, x.Options.Choice, cmp.Or(x.Options.Commands, document.Standard))
		return fault.WithHint(report.Classic(w, x.Ranking, answer, x.Classic), "measure transfers first: sshpace bench")
	}
	if x.document == nil {
		x.document = document.OfRanking(x.Ranking, x.Records, x.Options)
	}
	return x.Output.renderDocument(w, f.Name, x.document, x.Records)
}

// more are the commands that would give enough data to show a difference of limit, where the files
// can show one of shows; or says that no amount helps: whole runs differ by floor.
func more(files []related, shows, floor, limit float64) string {
	if floor >= limit {
		return "more data does not help: whole runs on one machine differ by " + unit.Difference(floor)
	}
	const most = 16
	times := max(2, min(most, square(shows/limit)))
	var lines []string
	for _, f := range files {
		if line := resume(f.File, f.word) + " " + document.Longer(f.File, times); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return "measure longer: " + strings.Join(lines, " && ")
}

func square(v float64) float64 { return v * v }

// Commands lead on from a result by its host or its name; or by nothing where it is the newest one, and of
// loopback or elsewhere. Options lead ssh to the host.
func Commands(results store.Store, path string, newest bool, policy string, options ...string) document.Commands {
	line := func(command string, more ...string) string {
		return shell.Line(slices.Concat([]string{"sshpace", command}, options, more)...)
	}
	host := results.Host(path)
	named := func(fits store.Kind) []string {
		if name := results.Name(path, fits); !newest || name == host {
			return []string{name}
		}
		return nil
	}
	of := named(store.Ranks)
	if policy != "modern" {
		of = append(of, "--policy", policy)
	}
	return document.Commands{
		Advise: line("advise", of...), Undo: line("advise", append(text.NonEmpty(host), "--undo")...), Streams: line("transfer", "--only", "streams"),
		Resume: line("bench", "--resume") + " " + results.Word(path), Report: shell.Line(append([]string{"sshpace", "report"}, named(store.Shows)...)...),
	}
}
