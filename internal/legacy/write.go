package legacy

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/record/store"
)

// imported is a result that was written.
type imported struct {
	File         string   `json:"file"`
	Label        string   `json:"label"`
	Formats      []string `json:"formats"`
	Trials       int      `json:"trials"`
	Measurements int      `json:"measurements"`
	Notes        []string `json:"notes,omitempty"`
}

// Write writes one result per machine and describes the contents: on standard error, if standard
// output gets the result itself.
func Write(stdout, stderr io.Writer, out string, machines []Machine, asJSON bool) error {
	say := stdout
	if out == store.StandardOutput {
		say = stderr
		if len(machines) > 1 {
			return fault.Usage("name a file: --out machines.jsonl becomes machines-1.jsonl and so on", "%d machines do not fit into one result", len(machines))
		}
	}
	names := numbered(out, len(machines))
	var written []imported
	for i, m := range machines {
		if err := store.Write(stdout, names[i], m.Records); err != nil {
			return err
		}
		trials, measurements := m.Count()
		written = append(written, imported{names[i], m.Label, m.Formats, trials, measurements, m.Notes})
		if asJSON {
			continue
		}
		fmt.Fprintf(say, "%s: %s (%s): %d trials, %d measurements\n", names[i], termsafe.OneLine(m.Label), strings.Join(m.Formats, ", "), trials, measurements)
		for _, note := range m.Notes {
			fmt.Fprintf(say, "  note: %s\n", termsafe.OneLine(note))
		}
	}
	if asJSON {
		return termsafe.WriteJSON(say, struct {
			Schema  string     `json:"schema"`
			Results []imported `json:"results"`
		}{"sshpace.import/1", written}, "  ")
	}
	if out == store.StandardOutput {
		return nil
	}
	verb := "report"
	if len(names) > 1 {
		verb = "compare"
	}
	fmt.Fprintf(stderr, "look at it: sshpace %s %s\n", verb, shell.Line(names...))
	return nil
}

// numbered returns the names of n results: the given one, or with numbers before its ending.
func numbered(out string, n int) []string {
	if n == 1 {
		return []string{out}
	}
	ending := filepath.Ext(out)
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d%s", strings.TrimSuffix(out, ending), i+1, ending))
	}
	return names
}
