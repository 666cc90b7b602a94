package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/base/shell"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
	"sshpace/internal/record/legacylog"
	"sshpace/internal/record/store"
)

// importFlags are the flags of `sshpace import`.
type importFlags struct {
	out, from, direction string
	size                 byteLimit
	rounds               int
	all, json            bool
}

func newImportCommand(sys System) *cobra.Command {
	var f importFlags
	cmd := page("import", &cobra.Command{
		Args: takes(1, -1),
		RunE: func(_ *cobra.Command, args []string) error { return runImport(sys, f, args) },
	})
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "result file to write; - is standard output")
	flags.StringVar(&f.from, "from", "", "only this format: "+strings.Join(legacylog.Formats(), ", "))
	flags.Var(&f.size, "size", "bytes of each copy, such as 4G, where the log does not say")
	flags.IntVar(&f.rounds, "rounds", 0, "rounds that an average of ssh-performance.sh was made of")
	flags.StringVar(&f.direction, "direction", "upload", "upload or download, where the log does not say")
	flags.BoolVar(&f.json, "json", false, "print which results were written as JSON")
	flags.BoolVar(&f.all, "all", false, "show all lines that are not understood, not only the first ones")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(legacylog.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// options checks the flags.
func (f importFlags) options() (legacylog.Options, error) {
	o := legacylog.Options{Format: f.from, Runs: f.rounds, Upload: record.Direction(f.direction), Size: unit.Bytes(f.size), Tool: toolVersion()}
	switch {
	case f.out == "":
		return o, usageError("such as --out result.jsonl", "no file to write: --out is missing")
	case f.from != "" && !slices.Contains(legacylog.Formats(), f.from):
		return o, usageError("formats: "+strings.Join(legacylog.Formats(), ", "), "--from %q", f.from)
	case o.Upload != record.Upload && o.Upload != record.Download:
		return o, usageError("use upload or download", "--direction %q", f.direction)
	}
	return o, nil
}

func runImport(sys System, f importFlags, args []string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	var machines []legacylog.Machine
	for _, path := range args {
		result, err := legacylog.Open(path, sys.Stdin, o)
		if err != nil {
			return legacylog.Explain(sys.Stderr, path, err, f.all)
		}
		legacylog.WriteUnread(sys.Stderr, path, result.Unread, result.Lines, f.all)
		machines = append(machines, result.Machines...)
	}
	return f.write(sys, machines)
}

// imported is a result that was written.
type imported struct {
	File         string   `json:"file"`
	Label        string   `json:"label"`
	Formats      []string `json:"formats"`
	Trials       int      `json:"trials"`
	Measurements int      `json:"measurements"`
	Notes        []string `json:"notes,omitempty"`
}

// write writes one result per machine and says what is in them: on standard
// error, if standard output gets the result itself.
func (f importFlags) write(sys System, machines []legacylog.Machine) error {
	say := sys.Stdout
	if f.out == store.StandardOutput {
		say = sys.Stderr
		if len(machines) > 1 {
			return usageError("name a file: --out machines.jsonl becomes machines-1.jsonl and so on", "%d machines do not fit into one result", len(machines))
		}
	}
	names := store.Numbered(f.out, len(machines))
	var written []imported
	for i, m := range machines {
		if err := store.Write(sys.Stdout, names[i], m.Records); err != nil {
			return err
		}
		trials, measurements := m.Count()
		written = append(written, imported{names[i], m.Label, m.Formats, trials, measurements, m.Notes})
		if f.json {
			continue
		}
		fmt.Fprintf(say, "%s: %s (%s): %d trials, %d measurements\n", names[i], oneLine(m.Label), strings.Join(m.Formats, ", "), trials, measurements)
		for _, note := range m.Notes {
			fmt.Fprintf(say, "  note: %s\n", oneLine(note))
		}
	}
	if f.json {
		return termsafe.WriteJSON(say, struct {
			Schema  string     `json:"schema"`
			Results []imported `json:"results"`
		}{"sshpace.import/1", written}, "  ")
	}
	if f.out == store.StandardOutput {
		return nil
	}
	verb := "report"
	if len(names) > 1 {
		verb = "compare"
	}
	fmt.Fprintf(sys.Stderr, "look at it: sshpace %s %s\n", verb, shell.Line(names...))
	return nil
}
