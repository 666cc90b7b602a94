package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet/history"
	"sshpace/internal/sys/terminal"
)

// jobsFlags are the flags of `sshpace jobs`.
type jobsFlags struct {
	runFlags
	all, stop, now, again, remove bool
	page                          string // address, "" = none
}

func newJobsCommand(sys System) *cobra.Command {
	var f jobsFlags
	cmd := page("jobs", &cobra.Command{
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), sys, cmd.Flags(), args) },
	})
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) (names []string, _ cobra.ShellCompDirective) {
		store := history.New(history.Dir(sys.Getenv))
		if len(args) == 0 {
			names, _ = store.Jobs()
		} else if f.again {
			names, _ = store.Names("")
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	flags := cmd.Flags()
	f.view.register(flags)
	f.registerLook(flags)
	f.registerMaxRC(flags)
	f.listing.registerLimits(flags, "")
	flags.BoolVar(&f.all, "all", false, "all runs of the history, not only detached ones")
	flags.BoolVar(&f.stop, "stop", false, "end a job as Ctrl-C ends a run, and wait for its end")
	flags.BoolVar(&f.now, "now", false, "with --stop: leave its commands running, as a second Ctrl-C does")
	flags.BoolVar(&f.remove, "remove", false, "remove a job that has ended, and its output, from its hub")
	f.job.hubFlags.register(flags)
	flags.BoolVar(&f.again, "rerun", false, "run a job again on sets of its hosts, such as failed,unreachable,unfinished, detached, too")
	flags.BoolVarP(&f.pace.yes, "yes", "y", false, "answer yes to --confirm-above and --then-confirm")
	flags.StringVar(&f.page, "page", "", "show the jobs in a page for browsers, at this `ADDRESS:PORT` of loopback (default any free port)")
	flags.Lookup("page").NoOptDefVal = runsPage
	return cmd
}

func (f *jobsFlags) run(ctx context.Context, sys System, flags *pflag.FlagSet, args []string) error {
	store := history.New(history.Dir(sys.Getenv))
	switch {
	case f.now && !f.stop:
		return usageError("such as sshpace jobs --stop --now ID", "--now is for --stop")
	case f.stop && len(args) != 1:
		return usageError("such as sshpace jobs --stop last", "--stop needs the ID of one job")
	case f.again && len(args) != 2:
		return usageError("such as sshpace jobs --rerun last failed,unfinished", "--rerun needs the ID of a job, and sets of its hosts")
	case f.again:
		rec, err := store.Job(args[0])
		if err != nil {
			return err
		}
		return background(ctx, sys, "run", "--detach", fmt.Sprintf("--quiet=%v", f.view.Quiet), fmt.Sprintf("--yes=%v", f.pace.yes), "--rerun", rec.ID+":"+args[1])
	case f.page != "":
		return sys.showRuns(ctx, store, f.page)
	case f.remove && len(args) != 1:
		return usageError("such as sshpace jobs --remove last", "--remove needs the ID of one job")
	case f.remove || f.job.given():
		return f.atHub(ctx, sys, store, args)
	case f.stop:
		return f.end(ctx, sys, store, args[0])
	}
	if err := cmp.Or(f.view.Check(), f.view.usable(sys)); err != nil {
		return err
	}
	if len(args) == 1 {
		if rec, err := store.Job(args[0]); err == nil {
			return f.followRun(ctx, sys, store, rec)
		} else if !errors.Is(err, history.ErrNone) || strings.HasPrefix(args[0], "last") {
			return err
		}
	}
	return store.PrintJobs(sys.Stdout, history.Listing{
		Words: args, Since: f.listing.since.Time, Limit: f.listing.limit, Width: terminal.Width(sys.Stdout, sys.Getenv), JSON: f.view.JSON, Jobs: !f.all,
	})
}

// end ends a job, and reports how it has ended.
func (f *jobsFlags) end(ctx context.Context, sys System, store *history.Store, name string) error {
	rec, err := store.Job(name)
	if err != nil {
		return err
	}
	drain, _, stop := interruptsSaying(ctx, sys, "the job ends without this wait")
	defer stop()
	if rec.How.Job != "" {
		rec, err = f.endAtHub(ctx, sys, store, rec)
	} else {
		rec, err = store.Stop(drain, rec, f.now)
	}
	if err == nil && !f.view.Quiet {
		fmt.Fprintf(sys.Stderr, "sshpace: %s %s\n", rec.ID, rec.Ending())
	}
	return interrupted(drain, err)
}

// endAtHub stops a job of a hub, and completes its record.
func (f *jobsFlags) endAtHub(ctx context.Context, sys System, store *history.Store, rec *history.Record) (*history.Record, error) {
	if rec.Finished {
		return rec, nil
	}
	run, err := f.ofRecord(rec)
	if err != nil {
		return nil, err
	}
	bus, err := run.job.bus(ctx, sys, connectionFlags{}, job.RoleClient)
	if err != nil {
		return nil, err
	}
	defer bus.Close()
	if err := job.StopJob(ctx, bus, rec.OfHub(), !f.now, run.people(sys).By); err != nil {
		return nil, err
	}
	f.view.Unseen = true
	err = f.followRun(ctx, sys, store, rec)
	now, unread := store.Read(rec.ID)
	if unread == nil && now.Finished {
		err = nil
	}
	return now, cmp.Or(unread, err)
}

// atHub does for a hub what the command does for the history.
func (f *jobsFlags) atHub(ctx context.Context, sys System, store *history.Store, args []string) error {
	if f.remove && !f.job.given() {
		rec, err := store.Job(args[0])
		if err != nil {
			return err
		}
		if rec.How.Job == "" {
			return usageError("sshpace keeps the last 200 of them", "%s is a run of this machine", rec.ID)
		}
		run, err := f.ofRecord(rec)
		if err != nil {
			return err
		}
		f.job, args = run.job, []string{rec.OfHub()}
	}
	if len(args) == 1 && !f.remove && !f.stop {
		return f.attach(ctx, sys, &task{}, args[0], true)
	}
	bus, err := f.job.bus(ctx, sys, connectionFlags{}, job.RoleClient)
	if err != nil {
		return err
	}
	defer bus.Close()
	if f.stop {
		return job.StopJob(ctx, bus, args[0], !f.now, f.people(sys).By)
	}
	var board job.Board
	if err := board.Follow(ctx, bus, true); err != nil {
		return err
	}
	var jobs []history.Job
	known := false
	for _, o := range board.Jobs() {
		n, stage := o.Count(), o.Stage
		known = known || f.remove && o.ID == args[0]
		if f.remove && o.ID == args[0] && (stage == job.Running || stage == job.Waiting) {
			return usageError("sshpace jobs --stop "+o.ID, "job %s is %s", o.ID, stage)
		}
		jobs = append(jobs, history.Job{ID: o.ID, State: string(stage), Start: o.Start, Command: o.Text, Hosts: n.Hosts, Done: n.Ended, Failed: n.Failed, Stopped: o.Stopped})
	}
	if f.remove && !known {
		return job.ErrUnknown(args[0])
	}
	if f.remove {
		return bus.Remove(ctx, args[0])
	}
	return history.WriteJobs(sys.Stdout, jobs, history.Listing{Width: terminal.Width(sys.Stdout, sys.Getenv), JSON: f.view.JSON})
}
