package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/terminal"
)

// viewFlags say how output is shown.
type viewFlags struct {
	gather bool
	json   bool
	outdir string
	raw    bool
	color  string
}

func (f *viewFlags) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.gather, "gather", "b", false, "show identical output once, at the end, under the set of its hosts")
	flags.BoolVar(&f.json, "json", false, "one JSON object a line: run, output, result, summary")
	flags.StringVar(&f.outdir, "outdir", "", "also write each host's output to HOST.out and HOST.err in this folder")
	flags.BoolVar(&f.raw, "raw", false, "do not clean control characters out of the hosts' output")
	flags.StringVar(&f.color, "color", "auto", "auto, always or never")
}

func (f *viewFlags) check() error {
	switch {
	case f.gather && f.json:
		return usageError("choose one of them", "-b and --json exclude each other")
	case f.color != "auto" && f.color != "always" && f.color != "never":
		return usageError("use auto, always or never", "--color %q", f.color)
	}
	return nil
}

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

// view is the sinks of a run.
type view struct {
	sink     fleet.Sink
	tally    *output.Tally // nil = no summary
	progress *output.Progress
	json     *output.JSON
	closers  []io.Closer
	errs     io.Writer
	quiet    bool
	retries  retryNotes
}

// open makes the sinks. others are told last, so that they know what was lost.
func (f *viewFlags) open(sys System, j *errand, quiet, verbose bool, info output.RunInfo, others []fleet.Sink) (*view, error) {
	v := &view{errs: sys.Stderr, quiet: quiet}
	var sinks output.Tee
	if f.outdir != "" {
		files, err := output.OpenFiles(f.outdir, outdirFiles)
		if err != nil {
			return nil, withHint(err, "name a folder of yours alone with --outdir")
		}
		v.closers = append(v.closers, files)
		sinks = append(sinks, files)
	}
	main, err := f.main(sys, j, info, v)
	if err != nil {
		return nil, err
	}
	sinks = append(sinks, main)
	if verbose {
		sinks = append(sinks, &timings{w: sys.Stderr})
	}
	if !quiet && !f.json {
		v.tally = &output.Tally{}
		sinks = append(sinks, v.tally)
	}
	sinks = append(sinks, others...)
	v.sink = sinks
	if !quiet && !f.json && terminal.Width(sys.Stderr, sys.Getenv) > 0 && len(j.hosts) > 1 {
		v.progress = output.StartProgress(sys.Stderr, len(j.hosts), f.colored(sys, sys.Stderr), sinks)
		v.sink = v.progress
	}
	return v, nil
}

// main is the sink that writes to standard output.
func (f *viewFlags) main(sys System, j *errand, info output.RunInfo, v *view) (fleet.Sink, error) {
	switch {
	case f.json:
		sink, err := output.NewJSON(sys.Stdout, info)
		v.json = sink
		return sink, err
	case f.gather:
		sink := output.NewGather(output.GatherOptions{Out: sys.Stdout, Err: sys.Stderr, Raw: f.raw})
		v.closers = append(v.closers, sink)
		return sink, nil
	}
	sink := output.NewPrefix(output.PrefixOptions{
		Out: sys.Stdout, Err: sys.Stderr, Width: output.Width(j.hosts), Raw: f.raw,
		ColorOut: f.colored(sys, sys.Stdout), ColorErr: f.colored(sys, sys.Stderr),
	})
	v.closers = append(v.closers, sink)
	return sink, nil
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

// close ends the sinks and writes the summary.
func (v *view) close(s fleet.Summary) error {
	if v.progress != nil {
		v.progress.Stop()
	}
	var errs []error
	for _, c := range v.closers {
		errs = append(errs, c.Close())
	}
	if v.json != nil {
		errs = append(errs, v.json.Summary(s))
	}
	if v.tally != nil {
		errs = append(errs, v.tally.WriteSummary(v.errs, s.Elapsed))
	}
	return errors.Join(errs...)
}

// retrying shows how many hosts wait to be tried again.
func (v *view) retrying(hosts int) {
	switch {
	case v.progress != nil:
		v.progress.Retrying(hosts)
	case !v.quiet && v.retries.due(time.Now(), hosts):
		fmt.Fprintf(v.errs, "sshpace: retrying hosts whose servers turn logins away: %d (--retry-for says how long)\n", hosts)
	}
}

// retryNotes decides when to say that hosts are being retried: not for a
// moment's crowd, and not again and again.
type retryNotes struct{ since, told time.Time }

const (
	retryPatience = 3 * time.Second
	retryEvery    = 15 * time.Second
)

func (n *retryNotes) due(now time.Time, hosts int) bool {
	if n.since.IsZero() {
		n.since = now
	}
	if hosts == 0 || now.Sub(n.since) < retryPatience || now.Sub(n.told) < retryEvery {
		return false
	}
	n.told = now
	return true
}

// timings writes what -v tells: a line for every host with the time that each
// phase took.
type timings struct{ w io.Writer }

func (*timings) Output(fleet.Event) error { return nil }

func (t *timings) Done(r fleet.Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s by %s to %s, attempt %d:", termsafe.Line(r.Host.String()), r.Phase, orNone(r.Engine), orNone(r.Addr), r.Attempts)
	for p := fleet.PhaseDNS; p < fleet.PhaseExit; p++ {
		if d := r.Spent[p]; d > 0 {
			fmt.Fprintf(&b, " %s %s", p, d.Round(10*time.Microsecond))
		}
	}
	if r.Waited > time.Millisecond {
		fmt.Fprintf(&b, ", waited %s", r.Waited.Round(time.Millisecond))
	}
	if r.Hint != "" {
		fmt.Fprintf(&b, "; %s", termsafe.Line(r.Hint))
	}
	_, err := fmt.Fprintln(t.w, b.String())
	return err
}

func orNone(s string) string {
	if s == "" {
		return "-"
	}
	return termsafe.Line(s)
}
