package cli

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/document"
	"sshpace/internal/show/page"
	"sshpace/internal/show/picture"
	render "sshpace/internal/show/report"
	"sshpace/internal/show/sheet"
	"sshpace/internal/sys/edit"
	"sshpace/internal/sys/terminal"
	"sshpace/internal/verdict/choice"
	"sshpace/internal/verdict/compare"
	"sshpace/internal/verdict/rank"
)

// format is one way to write a report.
type format struct {
	name    string
	endings []string // of files; none: only by --format
	binary  bool     // not for a terminal
}

var formats = []format{
	{name: "text", endings: []string{".txt"}},
	{name: "md", endings: []string{".md", ".markdown"}},
	{name: "csv", endings: []string{".csv"}},
	{name: "json", endings: []string{".json"}},
	{name: "html", endings: []string{".html", ".htm"}},
	{name: "xlsx", endings: []string{".xlsx"}, binary: true},
	{name: "svg", endings: []string{".svg"}},
	{name: "png", endings: []string{".png"}, binary: true},
	{name: "classic"},
	{name: recordFormat},
}

// recordFormat is that of results. It is no format of an --out: that would write
// over a result.
const recordFormat = "jsonl"

func formatNamed(name string) (format, bool) {
	i := slices.IndexFunc(formats, func(f format) bool { return f.name == name })
	if i < 0 {
		return format{}, false
	}
	return formats[i], true
}

func formatOfFile(path string) (format, bool) {
	ending := strings.ToLower(filepath.Ext(path))
	i := slices.IndexFunc(formats, func(f format) bool { return slices.Contains(f.endings, ending) })
	if i < 0 {
		return format{}, false
	}
	return formats[i], true
}

// outputFlags say where a report goes and what it looks like.
type outputFlags struct {
	json   bool
	format string
	out    []string
	table  string
	charts []string
	names  []string // of the formats that the command has
}

// add defines the flags; classic says whether that format and that of results exist here.
func (o *outputFlags) add(cmd *cobra.Command, classic bool) {
	for _, f := range formats {
		if f.name != "classic" && f.name != recordFormat || classic {
			o.names = append(o.names, f.name)
		}
	}
	flags := cmd.Flags()
	flags.StringVar(&o.format, "format", "", strings.Join(o.names, ", ")+" (default: what the ending of --out says, else text)")
	flags.BoolVar(&o.json, "json", false, "the same as --format json")
	flags.StringArrayVar(&o.out, "out", nil, "write to this file instead of standard output (may be repeated)")
	tables, charts := "cells, ciphers, macs, kex, overall, machines", "machines, ciphers, macs, cells, kex, all"
	if classic {
		tables, charts = "bulk, kex, copies, failed, controls", "answer, ranking, heat, cost, kex, steadiness, all"
	}
	flags.StringVar(&o.table, "table", "", "csv, md: only one of "+tables+" (csv: default is the first of these)")
	flags.StringArrayVar(&o.charts, "chart", nil, "svg, png: only these of "+charts+" (may be repeated)")
	complete := func(flag, names string) {
		_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(strings.Split(names, ", "), cobra.ShellCompDirectiveNoFileComp))
	}
	complete("table", tables)
	complete("chart", charts)
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(o.names, cobra.ShellCompDirectiveNoFileComp))
}

// target is one output: a file, or standard output where path is "".
type target struct {
	format format
	path   string
}

// targets resolves the flags before anything is read. A flag that none of the
// formats looks at is a mistake.
func (o *outputFlags) targets(sys System) ([]target, error) {
	out, err := o.resolve(sys)
	if err != nil {
		return nil, err
	}
	written := func(names ...string) bool {
		return slices.ContainsFunc(out, func(t target) bool { return slices.Contains(names, t.format.name) })
	}
	switch {
	case o.table != "" && !written("csv", "md"):
		return nil, usageError("add --format csv, or --out with a file that ends in .csv or .md", "--table is for csv and md only")
	case len(o.charts) > 0 && !written("svg", "png"):
		return nil, usageError("add --out with a file that ends in .svg or .png", "--chart is for svg and png only")
	}
	return out, nil
}

// resolve finds the format of every output.
func (o *outputFlags) resolve(sys System) ([]target, error) {
	if o.json && o.format != "" && o.format != "json" {
		return nil, usageError("leave one of them out", "--json and --format %s", o.format)
	}
	if o.json {
		o.format = "json"
	}
	chosen := format{name: "text"}
	if o.format != "" {
		f, ok := formatNamed(o.format)
		if !ok || !slices.Contains(o.names, o.format) {
			return nil, usageError("formats: "+strings.Join(o.names, ", "), "unknown format %q", o.format)
		}
		chosen = f
	}
	if len(o.out) == 0 {
		if chosen.binary && terminal.Is(sys.Stdout) {
			return nil, usageError("name a file: --out report."+chosen.name, "%s is not for a terminal", chosen.name)
		}
		return []target{{format: chosen}}, nil
	}
	var out []target
	for _, path := range o.out {
		f, ok := formatOfFile(path)
		switch {
		case path == "-":
			out = append(out, target{format: chosen})
			continue
		case ok && o.format != "" && !slices.Contains(o.out, "-") && f.name != chosen.name && !(f.name == "text" && chosen.name == "classic"):
			return nil, usageError("leave --format out, or --out a file with the ending of that format", "--format %s contradicts the ending of %q", o.format, path)
		case o.format != "" && len(o.out) == 1 && filepath.Ext(path) != ".jsonl":
			f, ok = chosen, true
		}
		if !ok {
			return nil, usageError("endings: .txt .md .csv .json .html .xlsx .svg .png; or say it with --format", "no format goes with the ending of %q", path)
		}
		out = append(out, target{f, path})
	}
	return out, nil
}

// onlyText reports whether several reports may follow each other.
func (o *outputFlags) onlyText() bool {
	return len(o.out) == 0 && slices.Contains([]string{"", "text", "json", "md", "classic"}, o.format)
}

// renderer writes one report in a format.
type renderer interface {
	render(w io.Writer, f format) error
}

// write renders to all targets. Each is rendered in memory first, so that an
// error leaves no half file.
func (o *outputFlags) write(sys System, targets []target, r renderer) error {
	for _, t := range targets {
		var rendered bytes.Buffer
		if err := r.render(&rendered, t.format); err != nil {
			return err
		}
		if t.path == "" {
			if _, err := rendered.WriteTo(sys.Stdout); err != nil {
				return err
			}
			continue
		}
		if err := edit.Replace(t.path, rendered.Bytes(), 0o600); err != nil {
			return withHint(err, "name a file that you may write with --out FILE")
		}
		fmt.Fprintf(sys.Stderr, "written: %s\n", oneLine(t.path))
	}
	return nil
}

// renderDocument writes the formats that a ranking and a comparison share.
func (o *outputFlags) renderDocument(w io.Writer, name string, d *document.Document, records *record.File) error {
	switch name {
	case "text":
		return render.Text(w, d)
	case "md":
		return withHint(render.Markdown(w, d, o.table), "choose one of them with --table")
	case "csv":
		return withHint(render.CSV(w, d, o.table), "choose one of them with --table")
	case "html":
		return page.Write(w, d)
	case "xlsx":
		return sheet.Write(w, d, records)
	case "svg":
		return withHint(picture.SVG(w, d, o.charts...), "choose one of them with --chart")
	case "png":
		return withHint(picture.PNG(w, d, o.charts...), "choose one of them with --chart")
	}
	return fmt.Errorf("no writer for the format %s", name)
}

// rankingReport is the report of one record file.
type rankingReport struct {
	r        *rank.Ranking
	records  *record.File
	classic  render.ClassicOptions
	out      outputFlags
	options  document.Options
	document *document.Document
}

func (x *rankingReport) render(w io.Writer, f format) error {
	if x.options.Choice == nil {
		x.options.Choice = choice.Of(x.r, choice.Options{})
	}
	switch f.name {
	case "json":
		return render.JSON(w, x.r, x.options.Choice)
	case recordFormat:
		return store.Put(w, slices.Collect(x.records.Records()))
	case "classic":
		answer := document.AnswerOf(x.r, x.options.Choice, x.options.Advise)
		return withHint(render.Classic(w, x.r, answer, x.classic), "measure transfers first: sshpace bench")
	}
	if x.document == nil {
		x.document = document.OfRanking(x.r, x.records, x.options)
	}
	return x.out.renderDocument(w, f.name, x.document, x.records)
}

// comparisonReport is the report of several record files.
type comparisonReport struct {
	c        *compare.Comparison
	out      outputFlags
	document *document.Document
}

func (x *comparisonReport) render(w io.Writer, f format) error {
	if f.name == "json" {
		return render.CompareJSON(w, x.c)
	}
	if x.document == nil {
		x.document = document.OfComparison(x.c)
	}
	return x.out.renderDocument(w, f.name, x.document, nil)
}
