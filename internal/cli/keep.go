package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"sshpace/internal/base/host"
	"sshpace/internal/bench/helper"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/keep"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/fleet/output"
	"sshpace/internal/ssh/dial"
	"sshpace/internal/ssh/mux"
	"sshpace/internal/ssh/reach"
	"sshpace/internal/ssh/route"
	"sshpace/internal/sys/proc"
	"sshpace/internal/sys/safedir"
	"sshpace/internal/sys/terminal"
)

// keepFlags are the flags of `sshpace keep`.
type keepFlags struct {
	lookFlags
	view                          output.View
	end, idle                     seconds
	sets                          []string // of hosts, with --list and its like
	foreground, started           bool
	list, stop, log, printsConfig bool
	refresh                       bool
}

func newKeepCommand(sys System) *cobra.Command {
	f := keepFlags{view: output.View{Color: "auto"}}
	cmd := f.command(sys, "keep", "login", f.run)
	cmd.Args = func(_ *cobra.Command, args []string) error {
		f.sets = args
		return nil
	}
	cmd.ValidArgsFunction = words(func(ctx context.Context) []string { return hostNames(ctx, sys, f.connection, true) })
	flags := cmd.Flags()
	flags.Var(&f.end, "for", "end all connections after this time (default never)")
	flags.Var(&f.idle, "idle", "end a connection that has had no session for this time (default never)")
	flags.BoolVar(&f.foreground, "foreground", false, "stay in the foreground, and report what happens to hosts")
	flags.BoolVar(&f.list, "list", false, "print the kept connections, or those of a set")
	flags.BoolVar(&f.stop, "stop", false, "end the kept connections, or those of a set")
	flags.BoolVar(&f.refresh, "refresh", false, "log in anew to all kept hosts, or those of a set; an old connection ends with its last session")
	flags.BoolVar(&f.log, "log", false, "show what has happened to kept hosts, or those of a set")
	flags.BoolVar(&f.printsConfig, "ssh-config", false, "print the lines of ssh_config that let ssh find the connections")
	flags.BoolVar(&f.json, "json", false, "print JSON: one object of all that is kept with --list, otherwise one a line")
	flags.BoolVarP(&f.view.Quiet, "quiet", "q", false, "no progress and no summary")
	flags.BoolVarP(&f.view.Verbose, "verbose", "v", false, "report how long each phase took on each host")
	registerStarted(flags, &f.started)
	return cmd
}

func (f *keepFlags) run(ctx context.Context, sys System) error {
	dir := safedir.Masters(sys.Getenv)
	asked := 0
	for _, given := range []bool{f.list, f.stop, f.refresh, f.log, f.printsConfig} {
		if given {
			asked++
		}
	}
	switch {
	case dir == "":
		return withHint(errors.New("no directory for sockets is known"), "set HOME")
	case asked > 1:
		return usageError("give one of them", "--list, --stop, --refresh, --log and --ssh-config exclude each other")
	case f.printsConfig:
		return keep.WriteConfig(sys.Stdout, dir)
	case asked == 0 && len(f.sets) > 0:
		return usageError("write it as sshpace keep -w "+f.sets[0], "keep takes no argument, got %q", f.sets[0])
	case asked > 0:
		return f.ask(ctx, sys, dir)
	case f.foreground || f.started:
		drain, hard, stop := interruptsSaying(ctx, sys, "ending the kept connections")
		defer stop()
		return interrupted(drain, ignoreCancel(f.hold(drain, hard, sys, dir)))
	}
	return background(ctx, sys, os.Args[1], os.Args[2:]...)
}

// hold logs in to the hosts, and holds the connections until drain ends.
func (f *keepFlags) hold(drain, hard context.Context, sys System, dir string) error {
	var started proc.Started
	if f.started {
		started = proc.NewStarted()
	}
	if err := cmp.Or(protect(sys), mux.Sweep(dir)); err != nil {
		return err
	}
	asker := &keep.Asker{}
	if terminal.CanAsk() {
		asker.Use(&keep.Terminal{Ask: terminal.Ask, Show: sys.show})
	}
	person := dial.NewPerson(sys.alone, asker.Ask, asker.Show)
	person.Away = asker.Away
	hosts, executor, err := f.open(drain, sys, reach.Params{Person: person, KeyHolder: helper.Line(keyHolder)})
	if err != nil {
		return err
	}
	defer executor.Close()
	if err := roomToKeep(len(hosts)); err != nil {
		return err
	}
	k := keep.New(drain, keep.Params{
		Reach: executor, Directory: dir, For: time.Duration(f.end), Idle: time.Duration(f.idle), Fanout: f.params(drain), Asker: asker,
	})
	defer k.Close()
	f.view.JSON, f.view.Gather = f.json, !f.json
	f.view.Naming = executor.Naming
	sink, err := f.view.Sink(sys.views(), hosts)
	if err != nil {
		return err
	}
	if err := k.Control(); err != nil {
		return err
	}
	executor.Warm(drain, hosts)
	untune := fanout.Tune(sys.Getenv, keep.Command)
	summary, err := k.LogIn(hard, hosts, sink)
	untune()
	end := output.Ending{Summary: summary, Err: err}.Verdict()
	if f.started && err == nil && drain.Err() == nil && k.Holds() {
		asker.Use(nil)
		err = cmp.Or(os.Chdir("/"), started.Leave(conclude(sys.Stderr, end)))
	}
	if err != nil {
		return err
	}
	if f.foreground && !f.view.Quiet {
		k.Tell(func(e keep.Event) { fmt.Fprintln(sys.Stderr, e) })
	}
	k.Hold()
	return end
}

// protect keeps the memory of this process to itself, or warns.
func protect(sys System) error {
	swapped, err := proc.Protect()
	if swapped {
		fmt.Fprintln(sys.Stderr, "sshpace: warning: the memory of this process may be swapped\n"+
			"sshpace: hint: ulimit -l unlimited, or LimitMEMLOCK=infinity of systemd, keeps it out of swap")
	}
	return err
}

// ask asks the keeps that live about hosts; about all of them if none is named.
func (f *keepFlags) ask(ctx context.Context, sys System, dir string) error {
	f.selection.Sets = append(f.selection.Sets, f.sets...)
	var names []string
	if !f.selection.None() {
		config, err := route.New(ctx, f.connection.params(sys))
		if err != nil {
			return err
		}
		hosts, err := f.selection.hosts(ctx, sys, history.New(history.Dir(sys.Getenv)), config)
		if err != nil {
			return err
		}
		names = host.Names(hosts)
	}
	keeps, err := keep.Living(dir)
	if err != nil {
		return err
	}
	switch {
	case f.refresh:
		return f.renew(ctx, sys, keeps, names)
	case f.stop:
		return keeps.Stop(sys.Stderr, names, f.view.Quiet)
	case f.log:
		return keeps.Log(sys.Stdout, names, f.json)
	}
	return keeps.List(sys.Stdout, names, f.json, terminal.Width(sys.Stdout, sys.Getenv))
}

// renew has keeps log in anew.
func (f *keepFlags) renew(ctx context.Context, sys System, keeps keep.Keeps, names []string) error {
	drain, _, stop := interruptsSaying(ctx, sys, "leaving the old connections as they are")
	defer stop()
	f.view.JSON, f.view.Gather = f.json, !f.json
	view := func(hosts []host.Host) (fleet.Sink, error) { return f.view.Sink(sys.views(), hosts) }
	ask := func(ctx context.Context, text string, secret bool) (answer string, err error) {
		sys.alone(func() { answer, err = terminal.Ask(ctx, text, secret) })
		return answer, err
	}
	asks := keep.Terminal{Ask: ask, Show: sys.show}
	return interrupted(drain, ignoreCancel(keeps.Refresh(drain, names, view, asks)))
}

// roomToKeep refuses more connections than may stay open.
func roomToKeep(hosts int) error {
	most := fanout.Keepable(hosts)
	if most == hosts {
		return nil
	}
	return withHint(fmt.Errorf("the limit of open files allows %d kept connections, not %d", most, hosts), fmt.Sprintf("raise it: ulimit -n %d, or LimitNOFILE of systemd", 4*hosts))
}
