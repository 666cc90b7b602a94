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

// interrupts returns two contexts: drain ends with the first SIGINT or SIGTERM,
// hard with the second. stop releases the watcher.
func interrupts(parent context.Context, sys System) (drain, hard context.Context, stop func()) {
	return interruptsOn(parent, sys, newScreen(sys.Stderr, sys.Getenv))
}

// interruptsOn is interrupts where something is drawn on the screen meanwhile.
func interruptsOn(parent context.Context, sys System, view *screen) (drain, hard context.Context, stop func()) {
	hard, cancelHard := context.WithCancelCause(parent)
	drain, cancelDrain := context.WithCancelCause(hard)
	watcher, end := context.WithCancel(parent)
	go func() {
		for _, cancel := range []context.CancelCauseFunc{cancelDrain, cancelHard} {
			select {
			case s := <-sys.Signals:
				cancel(&signalError{s})
				if context.Cause(hard) == nil {
					view.notice("sshpace: finishing what is running; press Ctrl-C again to stop at once")
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
