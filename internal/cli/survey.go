//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/bench/doctor"
	"sshpace/internal/bench/plan"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/survey"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/fleet/output"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/sys/journal"
	"sshpace/internal/sys/terminal"
)

// commandLimit is the time for a command that does nothing, and for the questions to a slow host.
const commandLimit = 40 * time.Second

// surveyFlags are the flags of `sshpace survey`.
type surveyFlags struct {
	lookFlags
	out, against string
	quiet, all   bool
}

func newSurveyCommand(sys System) *cobra.Command {
	var f surveyFlags
	cmd := f.command(sys, "survey", "login", f.run)
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "result file (default: a new one in the state directory)")
	flags.StringVar(&f.against, "against", "", "show what has changed since an earlier survey: its result, or last for the newest of the same hosts")
	flags.BoolVar(&f.json, "json", false, "print the result as JSON")
	flags.BoolVarP(&f.quiet, "quiet", "q", false, "show no progress")
	flags.BoolVar(&f.all, "all", false, "show all, with what to do about each cause")
	return cmd
}

func (f *surveyFlags) run(ctx context.Context, sys System) error {
	drain, hard, stop := interrupts(ctx, sys)
	defer stop()
	if err := format.Ends(f.out, journal.Ending); err != nil {
		return err
	}
	hosts, executor, err := f.open(drain, sys, reach.Params{})
	if err != nil {
		return interrupted(drain, err)
	}
	defer executor.Close()
	defer fanout.Tune(sys.Getenv, fleet.Command{})()
	return interrupted(drain, f.measure(drain, hard, sys, hosts, executor))
}

// surveyOf begins the record of a survey.
func surveyOf(hosts []host.Host) *record.File {
	var names []string
	for _, h := range hosts {
		names = append(names, h.String())
	}
	return &record.File{
		Campaign: record.Campaign{
			Format: record.FormatVersion, Command: "survey", Tool: toolVersion(), Started: time.Now().UTC(), Target: hostset.Fold(names), Engine: record.EngineNative,
		},
		Environment: record.Environment{OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Client: "sshpace " + toolVersion()},
	}
}

// measure logs in to the hosts, and records and shows the logins.
func (f *surveyFlags) measure(drain, hard context.Context, sys System, hosts []host.Host, executor *reach.Executor) (err error) {
	memory := surveyOf(hosts)
	results := store.Of(sys.Getenv)
	before, err := f.before(results, memory.Campaign.Target)
	if err != nil {
		return err
	}
	if f.out != "" {
		err = store.CheckNew(f.out, store.AnotherName)
	}
	if err != nil {
		return err
	}
	file, err := results.Create(f.out, memory.Campaign.Target)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	sink := record.Write(file)
	if err := cmp.Or(sink(&memory.Campaign), sink(&memory.Environment)); err != nil {
		return err
	}
	params := survey.Params{
		Judge: &doctor.Fleet{}, Fanout: f.params(drain),
		Progress: func(int, int) {}, Sink: record.Tee(sink, memory.Sink()),
	}
	params.Fanout.CommandTimeout = commandLimit
	if !f.quiet {
		params.Progress = terminal.NewProgress(sys.Stderr, "hosts").Report
	}
	end := plan.EndComplete
	switch err := survey.Run(hard, params, hosts, executor); {
	case drain.Err() != nil:
		end = plan.EndInterrupted
	case err != nil:
		return err
	}
	if err := params.Sink(end.Record()); err != nil {
		return err
	}
	shown := format.Survey(results, memory, before, f.all, format.Output{Fold: hostset.Fold, Same: output.WithoutHost})
	if err := cmp.Or(file.Sync(), format.Print(sys.Stdout, shown, f.json)); err != nil {
		return err
	}
	format.Saved(sys.Stderr, results.Shown(file.Name()))
	return verdict(memory.Hosts)
}

// before loads the earlier survey.
func (f *surveyFlags) before(results store.Store, target string) (*record.File, error) {
	path, err := f.against, error(nil)
	if path == "last" {
		path, err = results.Find(target, func(host string) (string, error) { return host, nil }, store.By("survey"))
	}
	if err != nil {
		return nil, withHint(err, "leave --against out for the first survey of these hosts")
	}
	return format.Earlier(path)
}

// verdict returns the exit code: a cause was found, otherwise some hosts were not reached.
func verdict(hosts []record.Host) error {
	switch {
	case slices.ContainsFunc(hosts, func(h record.Host) bool { return len(h.Causes) > 0 }):
		return fault.Exit(ExitFound)
	case slices.ContainsFunc(hosts, func(h record.Host) bool { return h.Class != "" }):
		return fault.Exit(ExitUnreachable)
	}
	return nil
}
