package format

import (
	"cmp"
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
	"sshpace/internal/show/report"
)

// Report writes one report in a format.
type Report interface {
	Render(w io.Writer, f Format) error
}

// pictureRows is the default number of rows of a chart in a picture: it fits a figure of a paper.
const pictureRows = 12

// show writes the document of a report.
func (o *Output) show(w io.Writer, f Format, d *document.Document, records *record.File) error {
	d.Columns = o.Columns
	switch tables, charts := d.TableNames(), d.ChartNames(); f.Parts {
	case Tables:
		picked, err := d.Pick(o.Pick)
		if err != nil {
			return fault.Usage("choose some of them with --columns", "%s", err)
		}
		return f.write(w, picked.Head(o.Limit), records, o.wanted(tables, charts))
	case Charts:
		return f.write(w, d.Head(cmp.Or(o.Limit, pictureRows)), records, o.wanted(charts, tables))
	}
	return f.write(w, d, records, nil)
}

// wanted returns the names of --only for a format that shows own parts, while another one shows the
// others: a name that only the other has is left to it, unless none remains.
func (o *Output) wanted(own, others []string) []string {
	left := slices.DeleteFunc(slices.Clone(o.Only), func(name string) bool { return !slices.Contains(own, name) && slices.Contains(others, name) })
	if len(left) == 0 {
		return o.Only
	}
	return left
}

// Ranking is the report of one record file.
type Ranking struct {
	Ranking *rank.Ranking
	Records *record.File
	Classic func(io.Writer, *rank.Ranking, document.Answer) error // writes the classic lists
	Output  Output
	Options document.Options
}

// Render writes the report.
func (x *Ranking) Render(w io.Writer, f Format) error {
	if x.Options.Choice == nil {
		x.Options.Choice = advise.Of(x.Ranking, advise.Options{})
	}
	shown := x.Options
	if f.Parts == Charts && !shown.All {
		shown.Only = true // a picture has no room for insecure algorithms
	}
	of := result{
		records: x.Records, output: x.Output, classic: x.lists,
		document: func() *document.Document { return document.OfRanking(x.Ranking, x.Records, shown) },
		json:     func(w io.Writer) error { return report.JSON(w, x.Ranking, x.Options) },
	}
	return of.Render(w, f)
}

// lists writes the report in the classic format.
func (x *Ranking) lists(w io.Writer) error {
	answer := document.AnswerOf(x.Ranking, x.Options.Choice, cmp.Or(x.Options.Commands, document.Standard))
	return fault.WithHint(x.Classic(w, x.Ranking, answer), "measure transfers first: sshpace bench")
}

// more returns the commands that would give enough data to show a difference of limit, where the
// files can show one of shows; or it says that no amount helps: whole runs differ by floor.
func more(files []related, shows, floor, limit float64) string {
	if floor >= limit {
		return "more data does not help: whole runs on one machine differ by " + unit.Difference(floor)
	}
	const most = 16
	far := shows / limit
	times := max(2, min(most, far*far))
	var lines []string
	for _, f := range files {
		flag, takes := document.Longer(f.File, times)
		if line := resume(f.File, f.word) + " " + flag + " (" + takes + ")"; !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return "measure longer: " + strings.Join(lines, " && ")
}

// configOption is the flag of ssh that names its configuration file.
const configOption = "-F"

// Commands returns the commands that continue from a result: named by its host or its path, or by
// nothing for the newest one. options lead ssh to the host.
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
	config := ""
	if i := slices.Index(options, configOption) + 1; i > 0 && i < len(options) && options[i] != "none" {
		config = options[i]
	}
	return document.Commands{
		Config: config, Advise: line("advise", of...), Undo: line("advise", append(text.NonEmpty(host), "--undo")...), Streams: line("transfer", "--only", "own,streams"),
		Resume: line("bench", "--resume") + " " + results.Word(path), Report: shell.Line(append([]string{"sshpace", "report"}, named(store.Shows)...)...),
	}
}
