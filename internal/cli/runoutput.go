package cli

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet"
	"sshpace/internal/history"
	"sshpace/internal/host"
	"sshpace/internal/output"
)

// outputFlags say how a fleet run is shown and recorded.
type outputFlags struct {
	gather bool
	json   bool
	raw    bool
	quiet  bool
	outdir string
	record string
}

// How much of a run is recorded.
var recordLevels = []string{"full", "hosts", "none"}

func (f *outputFlags) register(flags *pflag.FlagSet) {
	flags.BoolVarP(&f.gather, "gather", "b", false, "show output that is the same on several hosts once, under their folded names")
	flags.BoolVar(&f.json, "json", false, "write one JSON object a line (schema "+output.Schema+")")
	flags.BoolVar(&f.raw, "raw", false, "do not clean control characters out of remote text")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "no progress and no summary")
	flags.StringVar(&f.outdir, "outdir", "", "also save each host's output in this folder, as HOST.out and HOST.err")
	flags.StringVar(&f.record, "record", "full", "what the history keeps: full, hosts (without the command) or none")
}

// check refuses what does not go together.
func (f *outputFlags) check() error {
	if f.gather && f.json {
		return usageError("choose one of them", "-b and --json are two forms of output")
	}
	if !slices.Contains(recordLevels, f.record) {
		return usageError("the levels are full, hosts and none", "unknown --record %q", f.record)
	}
	return nil
}

// runOutput is the output of a run under way.
type runOutput struct {
	sink  fleet.Sink // hand this to fleet.Run
	flags *outputFlags
	sys   System
	start time.Time
	hosts int

	tally    *output.Tally
	json     *output.JSON
	progress *output.Progress
	recorder *history.Recorder
	closers  []func() error // of sinks, in the order in which to close them
}

// reservedFDs is how many file descriptors the output may need.
func (f *outputFlags) reservedFDs() int {
	if f.outdir == "" {
		return 1
	}
	return 1 + output.DefaultOpenFiles
}

// begin opens everything that the flags ask for. finish must be called once
// the run is over.
func (f *outputFlags) begin(sys System, store *history.Store, command string, hosts []host.Host) (*runOutput, error) {
	r := &runOutput{flags: f, sys: sys, start: time.Now(), hosts: len(hosts), tally: &output.Tally{}}
	r.record(store, command, hosts)
	sinks := output.Tee{r.tally}
	if r.recorder != nil {
		sinks = append(sinks, r.recorder)
	}
	if f.outdir != "" {
		files, err := output.OpenFiles(f.outdir, 0)
		if err != nil {
			return nil, errors.Join(err, r.close(0))
		}
		sinks = append(sinks, files)
		r.closers = append(r.closers, files.Close)
	}
	view, err := r.view(command, hosts)
	if err != nil {
		return nil, errors.Join(err, r.close(0))
	}
	r.sink = append(sinks, view)
	if len(hosts) > 1 && !f.quiet && terminalWidth(sys.Stderr, sys.Getenv) > 0 {
		r.progress = output.StartProgress(sys.Stderr, len(hosts), useColor(sys, isTerminal(sys.Stderr)), r.sink)
		r.sink = r.progress
	}
	return r, nil
}

// record starts the history. A run goes on without it, with a warning: it is
// no reason not to work.
func (r *runOutput) record(store *history.Store, command string, hosts []host.Host) {
	if r.flags.record == "none" {
		return
	}
	if r.flags.record == "hosts" {
		command = ""
	}
	recorder, err := store.Begin(history.Run{Start: r.start, Command: command, Hosts: hosts})
	if err != nil {
		r.warn(err)
		return
	}
	r.recorder = recorder
}

func (r *runOutput) warn(err error) {
	fmt.Fprintf(r.sys.Stderr, "sshpace: warning: this run is not recorded: %s\n", oneLine(err.Error()))
}

// view is the form in which people or programs see the output.
func (r *runOutput) view(command string, hosts []host.Host) (fleet.Sink, error) {
	outColor, errColor := useColor(r.sys, isTerminal(r.sys.Stdout)), useColor(r.sys, isTerminal(r.sys.Stderr))
	switch {
	case r.flags.json:
		info := output.RunInfo{Start: r.start, Command: command, Hosts: len(hosts)}
		if r.recorder != nil {
			info.ID = r.recorder.ID
		}
		var err error
		r.json, err = output.NewJSON(r.sys.Stdout, info)
		return r.json, err
	case r.flags.gather:
		g := output.NewGather(output.GatherOptions{Out: r.sys.Stdout, Err: r.sys.Stderr, Raw: r.flags.raw})
		r.closers = append(r.closers, g.Close)
		return g, nil
	}
	return output.NewPrefix(output.PrefixOptions{
		Out: r.sys.Stdout, Err: r.sys.Stderr, Width: output.Width(hosts), Raw: r.flags.raw, ColorOut: outColor, ColorErr: errColor,
	}), nil
}

// finish writes what is shown at the end and closes everything.
func (r *runOutput) finish(summary fleet.Summary) error {
	err := r.close(summary.Elapsed)
	switch {
	case err != nil:
		return err
	case r.json != nil:
		return r.json.Summary(summary)
	case r.hosts > 1 && !r.flags.quiet:
		return r.tally.WriteSummary(r.sys.Stderr, summary.Elapsed)
	}
	return nil
}

func (r *runOutput) close(elapsed time.Duration) error {
	if r.progress != nil {
		r.progress.Stop()
	}
	var errs []error
	for _, closeSink := range r.closers {
		errs = append(errs, closeSink())
	}
	if r.recorder != nil {
		if err := r.recorder.Close(elapsed); err != nil {
			r.warn(err)
		}
	}
	return errors.Join(errs...)
}

// useColor follows no-color.org and leaves dumb terminals alone.
func useColor(sys System, terminal bool) bool {
	return terminal && sys.Getenv("NO_COLOR") == "" && sys.Getenv("TERM") != "dumb"
}
