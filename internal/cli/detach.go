package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
	"sshpace/internal/sys/proc"
)

// detachedOutput is how much output of a detached run is kept unless the user gives a size.
const detachedOutput = 256 << 20

func (f *runFlags) registerDetach(flags *pflag.FlagSet) {
	flags.BoolVar(&f.detach, "detach", false, "go on in the background, without the terminal: print the ID for sshpace jobs, and keep the output there (256M, unless --keep-output says otherwise)")
	registerStarted(flags, &f.started)
}

// detached makes a command one that --detach starts once more, as the process that stays.
func (f *runFlags) detached(sys System, run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if !f.detach {
			return run(cmd, args)
		}
		if err := unseen(cmd.Flags()); err != nil {
			return err
		}
		if f.overHub(sys) {
			if err := sys.needHub(); err != nil { // which starts itself
				return err
			}
		}
		if !f.started {
			return background(cmd.Context(), sys, os.Args[1], os.Args[2:]...)
		}
		f.way = proc.NewStarted()
		if !cmd.Flags().Changed("keep-output") {
			f.keepOutput = detachedOutput
		}
		f.view.Unseen = true
		return run(cmd, args)
	}
}

// overHub reports whether the run, or the one that it repeats, is one of a hub.
func (f *runFlags) overHub(sys System) bool {
	if f.job.given() || f.rerun == "" {
		return f.job.given()
	}
	rec, _, err := history.New(history.Dir(sys.Getenv)).Again(f.rerun, io.Discard)
	return err == nil && rec.How.Job != ""
}

// unseen refuses flags about what is shown: that is up to who looks.
func unseen(flags *pflag.FlagSet) (err error) {
	shown := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(viewFlags).register(shown)
	new(runFlags).registerMaxRC(shown)
	shown.Bool("verbose", false, "")
	flags.Visit(func(flag *pflag.Flag) {
		if flag.Name != "dir" && shown.Lookup(flag.Name) != nil {
			err = cmp.Or(err, usageError("look at it by sshpace jobs ID --"+flag.Name, "--detach shows nothing, and --%s is about what is shown", flag.Name))
		}
	})
	return err
}

// readInput reads the whole input of the command, while there still is somebody who writes it.
func (t *task) readInput(ctx context.Context) error {
	if t.input == nil {
		return nil
	}
	all := t.input.Reader()
	defer context.AfterFunc(ctx, func() { all.Close() })()
	if _, err := io.Copy(io.Discard, all); ctx.Err() == nil {
		return err
	}
	return context.Cause(ctx)
}

// leaving takes a run from its terminal once its record has begun.
type leaving struct {
	fleet.Nothing
	sys    System
	drain  context.Context
	record *history.Recorder
	quiet  bool
	way    proc.Started
}

// Begin prints the ID and leaves.
func (l *leaving) Begin(s fleet.Start) error {
	if l.record.Err() != nil { // which the record has returned
		return nil
	}
	if err := context.Cause(l.drain); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(l.sys.Stdout, s.ID); err != nil {
		return err
	}
	if !l.quiet {
		fmt.Fprintln(l.sys.Stderr, "sshpace: it goes on in the background; sshpace jobs last shows it")
	}
	proc.OutliveHangup()
	return l.way.Leave(ExitOK)
}
