package cli

import (
	"context"
	"strconv"

	"github.com/spf13/pflag"

	"sshpace/internal/fanout"
	"sshpace/internal/sys/terminal"
)

// paceFlags control how a run goes from few hosts to many.
type paceFlags struct {
	fanout.Pace
	confirmAbove int
	yes          bool
}

func (f *paceFlags) register(flags *pflag.FlagSet) {
	flags.IntVar(&f.Canary, "canary", 0, "run on this many hosts first, and on the others only if none of them fails")
	flags.BoolVar(&f.ThenConfirm, "then-confirm", false, "with --canary: ask before the other hosts, even if none of the first failed")
	flags.Var(&f.Batches, "batch", "hosts in a batch, such as 10 or 10%; with commas for batches that grow: 1,10,25%")
	flags.Var((*seconds)(&f.Pause), "pause", "time between two batches (default none)")
	flags.Var(&f.MaxFail, "max-fail", "start no further hosts once more than this number have failed or are unreachable; running commands continue")
	flags.IntVar(&f.confirmAbove, "confirm-above", 0, "ask before a run on more hosts than this (default $SSHPACE_CONFIRM_ABOVE, otherwise never)")
	flags.BoolVarP(&f.yes, "yes", "y", false, "answer yes to --confirm-above and --then-confirm")
}

// question asks the user, or answers for them; nil where nobody is asked.
func (f *paceFlags) question(ctx context.Context) func(string) (bool, error) {
	if !f.ThenConfirm || f.yes {
		return nil
	}
	return func(text string) (bool, error) { return terminal.Confirm(ctx, text) }
}

// limit is the number of hosts above which the user is asked; 0 for none.
func (f *paceFlags) limit(getenv func(string) string) int {
	limit := f.confirmAbove
	if limit == 0 {
		limit, _ = strconv.Atoi(getenv("SSHPACE_CONFIRM_ABOVE"))
	}
	if f.yes {
		return 0
	}
	return limit
}
