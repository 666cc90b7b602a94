package format

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/record/store"
	"sshpace/internal/sys/file"
	"sshpace/internal/sys/terminal"
)

// Output is the destination and the form of a report.
type Output struct {
	Format  string
	JSON    bool // the same as Format "json"
	Out     []string
	Only    []string // tables of md and csv, charts of pictures
	Pick    []string // columns of these tables; none: those that fit the format
	Limit   int      // rows of each table in text, md and csv, and of each chart in pictures; none: as many as fit the format
	Columns int      // of a narrow terminal that text goes to; 0: none
	Names   []string // of the formats that the command has
	Fold    func(hosts []string) string
	Same    func(text, host string) string // a message without the host, equal for all hosts with the same failure
}

// Rendering is one output: a file, or standard output where path is "".
type Rendering struct {
	Format Format
	Path   string
}

// Renderings resolves the flags before anything is read. A flag that applies to none of the formats
// is a mistake.
func (o *Output) Renderings(stdout io.Writer) ([]Rendering, error) {
	out, err := o.resolve(stdout)
	if err != nil {
		return nil, err
	}
	if len(o.Out) == 0 {
		o.Columns = min(terminal.Columns(stdout), text.Columns)
	}
	if len(o.Only) > 0 && !slices.ContainsFunc(out, func(t Rendering) bool { return t.Format.Parts != 0 }) {
		return nil, fault.Usage("add --format csv, or --out with a file of such a format", "--only is for tables (%s) and charts (%s)", With(Tables), With(Charts))
	}
	if len(o.Pick) > 0 && !slices.ContainsFunc(out, func(t Rendering) bool { return t.Format.Parts == Tables }) {
		return nil, fault.Usage("add --format csv, or --out with a file of such a format", "--columns is for tables (%s)", With(Tables))
	}
	return out, nil
}

// resolve finds the format of every output.
func (o *Output) resolve(stdout io.Writer) ([]Rendering, error) {
	if o.JSON && o.Format != "" && o.Format != "json" {
		return nil, fault.Usage("leave one of them out", "--json and --format %s", o.Format)
	}
	if o.JSON {
		o.Format = "json"
	}
	chosen, ok := Named(cmp.Or(o.Format, "text"))
	if !ok || o.Format != "" && !slices.Contains(o.Names, o.Format) {
		return nil, fault.Usage(fault.Near("--format ", o.Format, o.Names, "formats: "+strings.Join(o.Names, ", ")), "unknown format %q", o.Format)
	}
	if len(o.Out) == 0 {
		if chosen.Binary && terminal.Is(stdout) {
			return nil, fault.Usage("name a file: --out report."+chosen.Name, "%s is not for a terminal", chosen.Name)
		}
		return []Rendering{{Format: chosen}}, nil
	}
	var out []Rendering
	for _, path := range o.Out {
		f, ok := ofFile(path)
		switch {
		case path == "-":
			out = append(out, Rendering{Format: chosen})
			continue
		case chosen.Name == Records || filepath.Ext(path) == "."+Records:
			return nil, fault.Usage("a result goes to standard output: sshpace report --anonymize --format jsonl RESULT.jsonl > NEW.jsonl", "--out writes reports, and %q would be a result", path)
		case ok && o.Format != "" && !slices.Contains(o.Out, "-") && f.Name != chosen.Name && !(f.Name == "text" && chosen.Name == classic):
			return nil, fault.Usage("leave --format out, or --out a file with the ending of that format", "--format %s contradicts the ending of %q", o.Format, path)
		case o.Format != "" && len(o.Out) == 1:
			f, ok = chosen, true
		}
		if !ok {
			return nil, fault.Usage("files are "+Files()+"; or choose with --format", "no format goes with the ending of %q", path)
		}
		if err := store.CheckPlace(path); err != nil {
			return nil, err
		}
		out = append(out, Rendering{f, path})
	}
	return out, nil
}

// OnlyText reports whether several reports may follow each other.
func (o *Output) OnlyText() bool {
	f, _ := Named(cmp.Or(o.Format, "text"))
	return len(o.Out) == 0 && f.Text
}

// Write renders to all renderings. Each is rendered in memory first, so that an error leaves no
// half file.
func (o *Output) Write(stdout, stderr io.Writer, renderings []Rendering, r Report) error {
	for _, t := range renderings {
		var rendered bytes.Buffer
		if err := r.Render(&rendered, t.Format); err != nil {
			return err
		}
		if t.Path == "" {
			if _, err := rendered.WriteTo(stdout); err != nil {
				return err
			}
			continue
		}
		if err := file.Replace(t.Path, rendered.Bytes(), 0o666); err != nil {
			return fault.WithHint(err, "name a file that you may write with --out FILE")
		}
		fmt.Fprintf(stderr, "written: %s\n", termsafe.OneLine(t.Path))
	}
	return nil
}

// Print writes a report as text or, if asked, as JSON.
func Print(w io.Writer, r Report, asJSON bool) error {
	name := "text"
	if asJSON {
		name = "json"
	}
	f, _ := Named(name)
	return r.Render(w, f)
}
