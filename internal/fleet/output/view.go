package output

import (
	"cmp"
	"io"
	"slices"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

// View controls how a run is shown.
type View struct {
	Gather bool
	Groups func(title string) io.Writer // with Gather: where the output of each group goes, without marks; nil: Out
	Diff   string                       // "" = no, Majority, or a host
	JSON   bool
	Outdir string
	Dirs   func(h host.Host) string // nil: Outdir for all
	Raw    bool
	Color  string // auto, always or never
	Sort   string // an Order; "" = as hosts end
	Table  bool
	Group  string // "", output or exit
	Mask   bool   // outputs that differ only by the host's own name are one group
	Failed bool   // only hosts that failed are shown
	Times  bool   // each line is shown with the time when it came
	Files  bool   // files are copied: errors are shown once for all hosts, at the end

	Watch bool // output is seen elsewhere; the ends of hosts are shown

	Unseen bool // nobody watches: there are only the files of Outdir

	Every bool // runs follow each other: each but the first shows only what has changed

	Quiet, Verbose bool
	Naming         func() int                          // names that are looked up; nil: unknown
	Confirm        func(question string) (bool, error) // asked between two batches; nil: nobody is asked

	changes *changes // with Every, of the runs so far
}

// Majority is the value of Diff without a host.
const Majority = "majority"

// Streams are the outputs of a run.
type Streams struct {
	Out, Err io.Writer
	Screen   *terminal.Screen // on Err, where it is a terminal
	Getenv   func(string) string
}

// Check refuses contradictions.
func (v *View) Check() error {
	switch {
	case v.Every && (v.gathers() || v.Table || v.Sort != "" || v.Failed || v.Times):
		return fault.Usage("leave it out, or use --json", "--every folds output by itself, and shows what has changed")
	case v.Watch && (v.JSON || v.Every || v.Times):
		return fault.Usage("choose one of them", "--watch excludes --json, --every and --timestamps")
	case v.Times && (v.gathers() || v.Table || v.Sort != "" || v.Failed):
		return fault.Usage("leave it out, or use --json", "--timestamps is for lines that are shown as they come")
	case (v.gathers() || v.Table || v.Sort != "" || v.Failed) && v.JSON:
		return fault.Usage("choose one of them", "-b, --diff, --group-by, --mask-names, --only-failed, --rows and --sort exclude --json")
	case v.gathers() && (v.Table || v.Sort != ""):
		return fault.Usage("choose one of them", "-b, --diff, --group-by and --mask-names exclude --rows and --sort")
	case !slices.Contains([]string{"", "output", "exit"}, v.Group):
		return fault.Usage("use output or exit", "--group-by %q", v.Group)
	case !slices.Contains([]order{"", byHost, byExit, byTime}, order(v.Sort)):
		return fault.Usage("use host, exit or time", "--sort %q", v.Sort)
	case v.Color != "auto" && v.Color != "always" && v.Color != "never":
		return fault.Usage("use auto, always or never", "--color %q", v.Color)
	}
	return nil
}

// gathers reports whether hosts are shown in groups.
func (v *View) gathers() bool { return v.Gather || v.Diff != "" || v.Group != "" || v.Mask }

// FDs returns how many files the view may keep open.
func (v *View) FDs() int {
	if v.Outdir != "" {
		return outdirFiles
	}
	return 0
}

// outdirFiles is how many per-host files are open at once; few, so that a small limit of open files
// leaves room for connections.
const outdirFiles = 16

// Sink shows a run on hosts.
func (v *View) Sink(s Streams, hosts []host.Host) (fleet.Sink, error) {
	var sinks Tee
	first := v.changes == nil
	if v.Outdir != "" {
		dirs := []string{v.Outdir}
		if v.Dirs != nil {
			dirs = nil
			for _, h := range hosts {
				dirs = append(dirs, v.Dirs(h))
			}
		}
		files, err := OpenFiles(outdirFiles, dirs...)
		if err != nil {
			return nil, fault.WithHint(err, "name a directory that is yours alone with --dir")
		}
		sinks = append(sinks, files)
	}
	if v.Unseen {
		return sinks, nil
	}
	sinks = append(sinks, v.main(s, hosts))
	if v.Verbose {
		sinks = append(sinks, &timings{w: s.Err})
	}
	watched := terminal.Width(s.Err, s.Getenv) > 0 && len(hosts) > 1
	if !v.Quiet && (v.JSON || !watched) {
		sinks = append(sinks, &retries{w: s.Err})
	}
	if !v.Quiet || v.Confirm != nil {
		sinks = append(sinks, &batches{w: s.Err, confirm: v.Confirm})
	}
	if !v.Quiet && !v.JSON && first {
		sinks = append(sinks, newClosing(s.Err, terminal.Width(s.Err, s.Getenv)))
	}
	heard := &unread{Tee: sinks}
	if v.Quiet || v.JSON || !watched {
		return heard, nil
	}
	width := func() int { return terminal.Width(s.Err, s.Getenv) }
	p := newProgress(s.Screen, width, v.Colored(s, s.Err), heard)
	p.naming = v.Naming
	return p, nil
}

// main is the sink for standard output.
func (v *View) main(s Streams, hosts []host.Host) fleet.Sink {
	switch {
	case v.JSON:
		j := newJSON(s.Out)
		j.times = v.Times
		return j
	case v.Every:
		if v.changes == nil {
			v.changes = &changes{opt: gatherOptions{Out: s.Out, Err: s.Err, Raw: v.Raw}}
		}
		return v.changes
	case v.gathers():
		o := gatherOptions{ByEnd: v.Group == "exit", Out: s.Out, Err: s.Err, Raw: v.Raw, Diff: v.Diff != "", Mask: v.Mask, Groups: v.Groups}
		if v.Diff != Majority {
			o.DiffHost = v.Diff
		}
		return v.sorted(newGather(o), "")
	}
	if v.Table {
		return v.sorted(newTable(s.Out, terminal.Width(s.Out, s.Getenv)), byHost)
	}
	if v.Watch && v.Sort == "" && !v.Failed {
		return ends{newGather(gatherOptions{Out: s.Out, Err: s.Err})}
	}
	lines := newPrefix(prefixOptions{
		Out: s.Out, Err: s.Err, Width: width(hosts), Raw: v.Raw, Times: v.Times,
		ColorOut: v.Colored(s, s.Out), ColorErr: v.Colored(s, s.Err),
	})
	if v.Files && len(hosts) > 1 {
		return v.sorted(&copies{lines, newGather(gatherOptions{Out: s.Out, Err: s.Err, Raw: v.Raw, Mask: true})}, "")
	}
	return v.sorted(lines, "")
}

// sorted wraps a sink so that hosts arrive in the user's order or else in the standard one; ""
// keeps arrival order.
func (v *View) sorted(sink fleet.Sink, standard order) fleet.Sink {
	order := cmp.Or(order(v.Sort), standard)
	if order == "" && !v.Failed {
		return sink
	}
	return newSorted(sink, order, v.Failed)
}

// Colored decides on color: the flag, then NO_COLOR, then CLICOLOR_FORCE, then whether w is a
// terminal.
func (v *View) Colored(s Streams, w io.Writer) bool {
	switch {
	case v.Color != "auto":
		return v.Color == "always"
	case s.Getenv("NO_COLOR") != "":
		return false
	case s.Getenv("CLICOLOR_FORCE") != "" && s.Getenv("CLICOLOR_FORCE") != "0":
		return true
	}
	return terminal.Width(w, s.Getenv) > 0
}
