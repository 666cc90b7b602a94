package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// signalError is the reason of a context that a signal ended.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return e.signal.String() }

// interrupts returns two contexts: drain ends with the first SIGINT or SIGTERM,
// hard with the second. stop releases the watcher.
func interrupts(parent context.Context, sys System) (drain, hard context.Context, stop func()) {
	return interruptsSaying(parent, sys, "finishing what is running; press Ctrl-C again to stop at once")
}

// interruptsSaying is interrupts with a text of its own for the first signal.
func interruptsSaying(parent context.Context, sys System, text string) (drain, hard context.Context, stop func()) {
	hard, cancelHard := context.WithCancelCause(parent)
	drain, cancelDrain := context.WithCancelCause(hard)
	watcher, end := context.WithCancel(parent)
	go func() {
		for _, cancel := range []context.CancelCauseFunc{cancelDrain, cancelHard} {
			select {
			case s := <-sys.Signals:
				cancel(&signalError{s})
				if context.Cause(hard) == nil {
					fmt.Fprintln(sys.Stderr, "\nsshpace: "+text)
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
		stopped := &Error{Err: err, Code: code}
		if told := (*Error)(nil); errors.As(err, &told) {
			stopped.Hint = told.Hint
		}
		return stopped
	}
	return exitWith(code)
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
