package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
)

// signalError is the reason of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return e.signal.String() }

// finishing is said at the first signal, where nothing better is known.
const finishing = "finishing what is running; press Ctrl-C again to stop at once"

// interrupts returns two contexts: drain ends with the first SIGINT or SIGTERM,
// hard with the second. stop releases the watcher.
func interrupts(parent context.Context, sys System) (drain, hard context.Context, stop func()) {
	return interruptsSaying(parent, newScreen(sys.Stderr, sys.Getenv), sys.Signals, finishing)
}

// interruptsSaying is interrupts with a text of its own for the first signal, on
// a screen on which something may be drawn meanwhile.
func interruptsSaying(parent context.Context, view *screen, signals <-chan os.Signal, text string) (drain, hard context.Context, stop func()) {
	hard, cancelHard := context.WithCancelCause(parent)
	drain, cancelDrain := context.WithCancelCause(hard)
	watcher, end := context.WithCancel(parent)
	go func() {
		for _, cancel := range []context.CancelCauseFunc{cancelDrain, cancelHard} {
			select {
			case s := <-signals:
				cancel(&signalError{s})
				if context.Cause(hard) == nil {
					view.notice("sshpace: " + text)
				}
			case <-watcher.Done():
				return
			}
		}
	}()
	return drain, hard, func() { end(); cancelDrain(nil); cancelHard(nil) }
}

// interrupted turns err into the exit code of the signal that ended ctx, if one
// did; what it says has been said.
func interrupted(ctx context.Context, err error) error {
	var caught *signalError
	if !errors.As(context.Cause(ctx), &caught) {
		return err
	}
	code := ExitInterrupted
	if caught.signal == syscall.SIGTERM {
		code = ExitTerminated
	}
	if err != nil && !errors.Is(err, context.Canceled) {
		return &Error{Err: err, Code: code, Hint: hintOf(err)}
	}
	return exitWith(code)
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
