package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"

	"sshpace/internal/sys/terminal"
)

// signalError is the reason of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return e.signal.String() }

// ends are the signals that end a command, and their exit codes.
var ends = map[os.Signal]int{syscall.SIGHUP: ExitHangup, syscall.SIGINT: ExitInterrupted, syscall.SIGQUIT: ExitQuit, syscall.SIGTERM: ExitTerminated}

// CatchSignals begins to catch the signals that end a command. One that was
// ignored when the program began stays ignored, as nohup(1) and shells that start
// a job in the background want it.
func CatchSignals() (caught <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 2)
	for s := range ends {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// signals is sys.Signals, which may be nil.
func (sys System) signals() (caught <-chan os.Signal, stop func()) {
	if sys.Signals == nil {
		return nil, func() {}
	}
	return sys.Signals()
}

// finishing is said at the first signal, where nothing better is known.
const finishing = "finishing what is running; press Ctrl-C again to stop at once"

// interrupts returns two contexts: drain ends with the first signal of those
// that end a command, hard with the second. What prepares for something, or takes too
// long to wait for, is under drain. stop releases the watcher.
func interrupts(parent context.Context, sys System) (drain, hard context.Context, stop func()) {
	return interruptsSaying(parent, terminal.NewScreen(sys.Stderr, sys.Getenv), sys, finishing)
}

// interruptsSaying is interrupts with a text of its own for the first signal, on
// a screen on which something may be drawn meanwhile.
func interruptsSaying(parent context.Context, view *terminal.Screen, sys System, text string) (drain, hard context.Context, stop func()) {
	hard, cancelHard := context.WithCancelCause(parent)
	drain, cancelDrain := context.WithCancelCause(hard)
	watcher, end := context.WithCancel(parent)
	signals, release := sys.signals()
	go func() {
		for _, cancel := range []context.CancelCauseFunc{cancelDrain, cancelHard} {
			select {
			case s := <-signals:
				cancel(&signalError{s})
				if context.Cause(hard) == nil {
					view.Notice("sshpace: " + text)
				}
			case <-watcher.Done():
				return
			}
		}
	}()
	return drain, hard, func() { release(); end(); cancelDrain(nil); cancelHard(nil) }
}

// interrupted turns err into the exit code of the signal that ended ctx, if one
// did; what it says has been said.
func interrupted(ctx context.Context, err error) error {
	var caught *signalError
	if !errors.As(context.Cause(ctx), &caught) {
		return err
	}
	code := ends[caught.signal]
	if said := (*signalError)(nil); err != nil && !errors.Is(err, context.Canceled) && !errors.As(err, &said) {
		return &Error{Err: err, Code: code, Hint: hintOf(err)}
	}
	return exitWith(code)
}
