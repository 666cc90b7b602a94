package cli

import (
	"cmp"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/terminal"
)

// viewFlags say how output is shown.
type viewFlags struct {
	gather bool
	diff   string // "" = no, majority, or a host
	json   bool
	outdir string
	raw    bool
	color  string
	sort   string
	table  bool
	group  string // "", output or exit
}

func (f *viewFlags) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.gather, "gather", "b", false, "show identical output once, at the end, under the set of its hosts")
	flags.StringVar(&f.diff, "diff", "", "as -b, and of all but the largest group only how it differs from that, or from the output of this host")
	flags.Lookup("diff").NoOptDefVal = majority
	flags.StringVar(&f.group, "group-by", "", "output: as -b; exit: as -b, and hosts that ended differently apart")
	flags.BoolVar(&f.table, "table", false, "one line a host, at the end: how it ended, time, lines sent, the last of them")
	flags.StringVar(&f.sort, "sort", "", "show hosts one after the other, at the end, by host (as named), exit or time; the worst last")
	flags.BoolVar(&f.json, "json", false, "one JSON object a line: run, output, result, summary")
	flags.StringVar(&f.outdir, "outdir", "", "also write each host's output to HOST.out and HOST.err in this folder")
	flags.BoolVar(&f.raw, "raw", false, "do not clean control characters out of the hosts' output")
	flags.StringVar(&f.color, "color", "auto", "auto, always or never")
}

// majority is the value of --diff without a host.
const majority = "majority"

func (f *viewFlags) check() error {
	switch {
	case (f.gathers() || f.table || f.sort != "") && f.json:
		return usageError("choose one of them", "-b, --diff, --group-by, --table and --sort exclude --json")
	case f.gathers() && (f.table || f.sort != ""):
		return usageError("choose one of them", "-b, --diff and --group-by exclude --table and --sort")
	case !slices.Contains([]string{"", "output", "exit"}, f.group):
		return usageError("use output or exit", "--group-by %q", f.group)
	case !slices.Contains([]output.Order{"", output.ByHost, output.ByExit, output.ByTime}, output.Order(f.sort)):
		return usageError("use host, exit or time", "--sort %q", f.sort)
	case f.color != "auto" && f.color != "always" && f.color != "never":
		return usageError("use auto, always or never", "--color %q", f.color)
	}
	return nil
}

// gathers tells whether hosts are shown in groups.
func (f *viewFlags) gathers() bool { return f.gather || f.diff != "" || f.group != "" }

// fds is what the view may keep open.
func (f *viewFlags) fds() int {
	if f.outdir != "" {
		return outdirFiles
	}
	return 0
}

// outdirFiles is how many per-host files are open at once; few, so that a small
// limit of open files leaves room for connections.
const outdirFiles = 16

// sink makes the sink of a run.
func (f *viewFlags) sink(sys System, hosts []host.Host, quiet, verbose bool, confirm func(string) (bool, error)) (fleet.Sink, error) {
	var sinks output.Tee
	if f.outdir != "" {
		files, err := output.OpenFiles(f.outdir, outdirFiles)
		if err != nil {
			return nil, withHint(err, "name a folder of yours alone with --outdir")
		}
		sinks = append(sinks, files)
	}
	sinks = append(sinks, f.main(sys, hosts))
	if verbose {
		sinks = append(sinks, output.NewTimings(sys.Stderr))
	}
	watched := terminal.Width(sys.Stderr, sys.Getenv) > 0 && len(hosts) > 1
	if !quiet && (f.json || !watched) {
		sinks = append(sinks, output.NewRetries(sys.Stderr))
	}
	if !quiet || confirm != nil {
		sinks = append(sinks, output.NewBatches(sys.Stderr, confirm))
	}
	if !quiet && !f.json {
		sinks = append(sinks, output.NewClosing(sys.Stderr))
	}
	if quiet || f.json || !watched {
		return sinks, nil
	}
	width := func() int { return terminal.Width(sys.Stderr, sys.Getenv) }
	return output.NewProgress(sys.Stderr, width, f.colored(sys, sys.Stderr), sinks), nil
}

// main is the sink that writes to standard output.
func (f *viewFlags) main(sys System, hosts []host.Host) fleet.Sink {
	switch {
	case f.json:
		return output.NewJSON(sys.Stdout)
	case f.gathers():
		o := output.GatherOptions{ByEnd: f.group == "exit", Out: sys.Stdout, Err: sys.Stderr, Raw: f.raw, Diff: f.diff != ""}
		if f.diff != majority {
			o.DiffHost = f.diff
		}
		return output.NewGather(o)
	}
	if f.table {
		return f.sorted(output.NewTable(sys.Stdout, terminal.Width(sys.Stdout, sys.Getenv)), output.ByHost)
	}
	return f.sorted(output.NewPrefix(output.PrefixOptions{
		Out: sys.Stdout, Err: sys.Stderr, Width: output.Width(hosts), Raw: f.raw,
		ColorOut: f.colored(sys, sys.Stdout), ColorErr: f.colored(sys, sys.Stderr),
	}), "")
}

// sorted lets a sink have hosts in order, as the user says or else as standard; "" is
// as they come.
func (f *viewFlags) sorted(sink fleet.Sink, standard output.Order) fleet.Sink {
	order := cmp.Or(output.Order(f.sort), standard)
	if order == "" {
		return sink
	}
	return output.NewSorted(sink, order)
}

// colored decides on colour: the flag, then NO_COLOR, then CLICOLOR_FORCE, then
// whether w is a terminal.
func (f *viewFlags) colored(sys System, w io.Writer) bool {
	switch {
	case f.color != "auto":
		return f.color == "always"
	case sys.Getenv("NO_COLOR") != "":
		return false
	case sys.Getenv("CLICOLOR_FORCE") != "" && sys.Getenv("CLICOLOR_FORCE") != "0":
		return true
	}
	return terminal.Width(w, sys.Getenv) > 0
}
