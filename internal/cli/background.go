package cli

import (
	"cmp"
	"context"
	"os"

	"github.com/spf13/pflag"

	"sshpace/internal/base/fault"
	"sshpace/internal/sys/proc"
)

// startedFlag marks the process that stays in the background.
const startedFlag = "started"

// registerStarted defines the flag of a command that background starts.
func registerStarted(flags *pflag.FlagSet, started *bool) {
	flags.BoolVar(started, startedFlag, false, "")
	_ = flags.MarkHidden(startedFlag)
}

// background starts a command as the process that stays in the background, and ends as it reports
// when it leaves the terminal, or as it ends before.
func background(ctx context.Context, sys System, command string, args ...string) error {
	drain, _, stop := sys.Signals.Interrupts(ctx, func() {}) // the other process has it, too
	defer stop()
	exit, err := proc.Start(drain, append([]string{os.Args[0], command, "--" + startedFlag}, args...))
	if err == nil && exit == ExitOK { // an interrupt came too late
		return nil
	}
	return interrupted(drain, cmp.Or(err, fault.Exit(exit)))
}
