package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"sshpace/internal/base/unit"
	"sshpace/internal/legacy"
	"sshpace/internal/record"
)

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
	flags.StringVar(&f.from, "from", "", "only this format: "+strings.Join(legacy.Formats(), ", "))
	flags.Var(&f.size, "size", "bytes of each copy, such as 4G, where the log does not say")
	flags.IntVar(&f.rounds, "rounds", 0, "number of rounds in an average of ssh-performance.sh")
	flags.StringVar(&f.direction, "direction", "upload", "upload or download, where the log does not say")
	flags.BoolVar(&f.json, "json", false, "print the list of written results as JSON")
	flags.BoolVar(&f.all, "all", false, "show all lines that are not understood, not only the first ones")
	_ = cmd.RegisterFlagCompletionFunc("from", cobra.FixedCompletions(legacy.Formats(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func runImport(sys System, f importFlags, args []string) error {
	if f.out == "" {
		return usageError("such as --out result.jsonl", "no file to write: --out is missing")
	}
	o := legacy.Options{Format: f.from, Runs: f.rounds, Upload: record.Direction(f.direction), Size: unit.Bytes(f.size), Tool: toolVersion()}
	if err := o.Check(); err != nil {
		return err
	}
	var machines []legacy.Machine
	for _, path := range args {
		result, err := legacy.Open(path, sys.Stdin, o)
		if err != nil {
			return legacy.Explain(sys.Stderr, path, err, f.all)
		}
		legacy.WriteUnread(sys.Stderr, path, result.Unread, result.Lines, f.all)
		machines = append(machines, result.Machines...)
	}
	return legacy.Write(sys.Stdout, sys.Stderr, f.out, machines, f.json)
}
