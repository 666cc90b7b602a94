//go:build linux

package cli

import (
	"cmp"
	"context"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sshpace/internal/campaign"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/journal"
)

// recordFlags are the flags of all measurements whose records are kept.
type recordFlags struct {
	endFlags
	resultFlags
}

// measurable is the measurement of a command, by its flags. Each method is told whether a host is
// named.
type measurable interface {
	// adopt takes over the plan of a resumed file, which may come from anybody.
	adopt(flags *pflag.FlagSet, c record.Campaign, hostGiven bool) error
	// check refuses flags that make no sense.
	check(flags *pflag.FlagSet, hostGiven bool) error
	measure(sys System, m measurement) error
}

// measurement is a running measurement.
type measurement struct {
	campaign.Output
	flags       *pflag.FlagSet
	destination openssh.Destination // Host "" for the private server
	drain, hard context.Context     // end with the first and with the second Ctrl-C
}

// command returns a cobra command that measures x.
func (f *recordFlags) command(sys System, name string, args cobra.PositionalArgs, x measurable) *cobra.Command {
	return page(name, &cobra.Command{Args: args, RunE: func(cmd *cobra.Command, args []string) error { return f.open(cmd, sys, name, args, x) }})
}

// open opens a measurement: the result that it continues, or the seed of a new one; then the host;
// and runs it until a signal ends it.
func (f *recordFlags) open(cmd *cobra.Command, sys System, name string, args []string, x measurable) error {
	file, err := campaign.Reopen(store.Of(sys.Getenv), f.resume, name, f.connection.label, &args)
	if err != nil {
		return err
	}
	m, hostGiven := measurement{flags: cmd.Flags(), Output: f.output(sys, name, f.endFlags.options(), file)}, len(args) > 0
	if file != nil {
		defer file.Close()
		if err := cmp.Or(keepPlan(m.flags), x.adopt(m.flags, file.Old.Campaign, hostGiven)); err != nil {
			return err
		}
	} else if !m.flags.Changed("seed") {
		f.seed = rand.Uint64N(1 << 53) // exact in every JSON reader
	}
	if err := cmp.Or(format.Ends(f.out, journal.Ending), store.CheckResult(f.out), x.check(m.flags, hostGiven)); err != nil {
		return err
	}
	if m.destination, err = f.connection.destination(args); err != nil {
		return err
	}
	var stop func()
	m.drain, m.hard, stop = interrupts(cmd.Context(), sys)
	defer stop()
	// A reader that is gone, as of `2>&1 | head`, must not kill a measurement: with the signal
	// caught, writing to it is an error (os/signal).
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	defer signal.Stop(gone)
	return interrupted(m.drain, x.measure(sys, m))
}
