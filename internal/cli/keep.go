package cli

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/fanout"
	"sshpace/internal/fanout/keep"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/sys/safedir"
)

// keepFlags are the flags of `sshpace keep`.
type keepFlags struct {
	lookFlags
	view       output.View
	end, idle  seconds
	foreground bool
}

func newKeepCommand(sys System) *cobra.Command {
	f := keepFlags{view: output.View{Color: "auto"}}
	cmd := f.command(sys, "keep", "login", f.run)
	flags := cmd.Flags()
	flags.Var(&f.end, "for", "end all connections after this time (default never)")
	flags.Var(&f.idle, "idle", "end a connection that has had no session for this time (default never)")
	flags.BoolVar(&f.foreground, "foreground", false, "stay in the foreground, and report what happens to hosts")
	flags.BoolVar(&f.json, "json", false, "one JSON object a line: run, output, result, summary")
	flags.BoolVarP(&f.view.Quiet, "quiet", "q", false, "no progress and no summary")
	flags.BoolVarP(&f.view.Verbose, "verbose", "v", false, "report how long each phase took on each host")
	return cmd
}

func (f *keepFlags) run(ctx context.Context, sys System) error {
	drain, hard, stop := interruptsSaying(ctx, sys, "ending the kept connections")
	defer stop()
	return interrupted(drain, ignoreCancel(f.hold(drain, hard, sys)))
}

// hold logs in to the hosts, and holds the connections until drain ends.
func (f *keepFlags) hold(drain, hard context.Context, sys System) error {
	dir := safedir.Masters(sys.Getenv)
	if dir == "" {
		return withHint(errNoPlace, "set HOME")
	}
	if err := mux.Sweep(dir); err != nil {
		return err
	}
	hosts, executor, err := f.open(drain, sys, reach.Params{})
	if err != nil {
		return err
	}
	defer executor.Close()
	params := keep.Params{Reach: executor, Directory: dir, For: time.Duration(f.end), Idle: time.Duration(f.idle), Fanout: f.params(drain)}
	k := keep.New(drain, params)
	f.view.JSON, f.view.Gather = f.json, !f.json
	f.view.Naming = executor.Naming
	sink, err := f.view.Sink(sys.views(), hosts)
	if err != nil {
		return err
	}
	executor.Warm(drain, hosts)
	untune := fanout.Tune(sys.Getenv, keep.Command)
	summary, err := k.LogIn(hard, hosts, sink)
	untune()
	verdict := output.Ending{Summary: summary, Err: err}.Verdict()
	if err != nil {
		return verdict
	}
	k.Hold()
	return verdict
}

var errNoPlace = errors.New("there is no directory for sockets")
