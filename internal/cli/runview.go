package cli

import (
	"github.com/spf13/pflag"

	"sshpace/internal/fleet/output"
)

// viewFlags control how output is shown.
type viewFlags struct{ output.View }

func (f *viewFlags) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.Gather, "gather", "b", false, "show identical output once, at the end, under the set of its hosts")
	flags.StringVar(&f.Diff, "diff", "", "like -b, but show other groups as diffs against the largest, or against the output of this host")
	flags.Lookup("diff").NoOptDefVal = output.Majority
	flags.StringVar(&f.Group, "group-by", "", "output: like -b; exit: like -b, but separate groups by exit status")
	flags.BoolVar(&f.Mask, "mask-names", false, "like -b, but outputs that differ only by the host's own name are one group, which shows it as <host>")
	flags.BoolVar(&f.Table, "rows", false, "one line a host, at the end: how it ended, time, lines sent, the last of them")
	flags.BoolVar(&f.Failed, "only-failed", false, "show only hosts that failed or were unreachable; the summary counts all")
	flags.StringVar(&f.Sort, "sort", "", "show hosts one after the other, at the end, by host (as named), exit or time; the worst last")
	flags.BoolVar(&f.JSON, "json", false, "one JSON object a line: run, output, result, summary")
	flags.StringVar(&f.Outdir, "dir", "", "also write each host's output to HOST.out and HOST.err in this directory")
	flags.BoolVar(&f.Raw, "raw", false, "do not clean control characters out of the hosts' output")
	flags.StringVar(&f.Color, "color", "auto", "auto, always or never")
}
