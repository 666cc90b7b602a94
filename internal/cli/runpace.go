package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

// paceFlags say how a run goes from few hosts to many.
type paceFlags struct {
	canary       int
	thenConfirm  bool
	batches      fleet.Shares
	pause        seconds
	maxFail      fleet.Shares
	confirmAbove int
	yes          bool
}

func (f *paceFlags) register(flags *pflag.FlagSet) {
	flags.IntVar(&f.canary, "canary", 0, "run on this many hosts first, and on the others only if none of them fails")
	flags.BoolVar(&f.thenConfirm, "then-confirm", false, "with --canary: ask before the others, whatever became of the first")
	flags.Var(&f.batches, "batch", "hosts in a batch, such as 10 or 10%; with commas for batches that grow: 1,10,25%")
	flags.Var(&f.pause, "pause", "time between two batches (default none)")
	flags.Var(&f.maxFail, "max-fail", "start no further hosts when more than so many have failed or are unreachable; what runs goes on")
	flags.IntVar(&f.confirmAbove, "confirm-above", 0, "ask before a run on more hosts than this (default $SSHPACE_CONFIRM_ABOVE, else never)")
	flags.BoolVarP(&f.yes, "yes", "y", false, "answer yes to --confirm-above and --then-confirm")
}

func (f *paceFlags) check() error {
	for _, size := range f.batches {
		if size.Percent == 0 && size.Count == 0 {
			return usageError("a batch has at least one host", "--batch %s", f.batches.String())
		}
	}
	switch {
	case f.thenConfirm && f.canary == 0:
		return usageError("give --canary N, too", "--then-confirm asks after a canary")
	case len(f.maxFail) > 1:
		return usageError("give one number or part", "--max-fail %s", f.maxFail.String())
	case f.pause > 0 && f.canary == 0 && len(f.batches) == 0:
		return usageError("give --batch or --canary, too", "--pause is between batches")
	}
	return nil
}

func (f *paceFlags) pace() fleet.Pace {
	p := fleet.Pace{Pause: time.Duration(f.pause), Batches: f.batches, FirstMustPass: f.canary > 0 && !f.thenConfirm && len(f.maxFail) == 0}
	if f.canary > 0 {
		p.Batches = append([]fleet.Share{{Count: f.canary}}, f.batches...)
		if len(f.batches) == 0 {
			p.Batches = append(p.Batches, fleet.Share{Percent: 100})
		}
	}
	if len(f.maxFail) > 0 {
		p.MaxFail = &f.maxFail[0]
	}
	return p
}

// question asks somebody, or answers for them; nil where nobody is to be asked.
func (f *paceFlags) question(ctx context.Context) func(string) (bool, error) {
	if !f.thenConfirm || f.yes {
		return nil
	}
	return func(text string) (bool, error) { return terminal.Confirm(ctx, text) }
}

// limit is the number of hosts above which somebody is asked; 0 for none.
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
