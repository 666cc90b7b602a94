package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"sshpace/internal/base/fault"
	"sshpace/internal/sys/proc"
)

// finishing is the message at the first signal, unless there is a better one.
const finishing = "finishing what is running; press Ctrl-C again to stop at once"

// interrupts returns two contexts: drain ends with the first signal of those that end a command,
// hard with the second. Preparations, and work that takes too long to wait for, use drain.
func interrupts(parent context.Context, sys System) (drain, hard context.Context, stop func()) {
	return interruptsSaying(parent, sys, finishing)
}

// interruptsSaying is interrupts with another message for the first signal.
func interruptsSaying(parent context.Context, sys System, text string) (drain, hard context.Context, stop func()) {
	return sys.Signals.Interrupts(parent, func() { sys.screen().Notice("sshpace: " + text) })
}

// outlive makes a closed standard output, or a file that may not grow, an error instead of a deadly
// signal, until stop is called.
func outlive() (stop func()) {
	deadly := make(chan os.Signal, 1)
	signal.Notify(deadly, syscall.SIGPIPE, syscall.SIGXFSZ)
	return func() { signal.Stop(deadly) }
}

// interrupted turns err into the exit code of the signal that ended ctx, if one did; its message
// has been printed.
func interrupted(ctx context.Context, err error) error {
	caught := proc.CaughtBy(ctx)
	if caught == nil {
		return err
	}
	if err = ignoreCancel(err); err != nil {
		return &Error{Err: err, Code: proc.ExitOf(caught), Hint: hintOf(err)}
	}
	return fault.Exit(proc.ExitOf(caught))
}
