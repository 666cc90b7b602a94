package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

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

// moment is what a command has to end what it started, when a signal ends it that it has
// not asked for.
const moment = 250 * time.Millisecond

// untilSignal returns a context that ends with the first signal that a command has not
// asked for; a moment later the signal ends the process. What waits under the context has
// ended what it started by then, and what waits for something else, such as a pipe that
// nobody writes to, is not waited for. While a command has asked for signals they are its
// own.
func untilSignal(parent context.Context, sys System) (context.Context, System) {
	if sys.Signals == nil {
		return parent, sys
	}
	ctx, cancel := context.WithCancelCause(parent)
	catch := sys.Signals
	watch := func() (stop func()) {
		signals, release := catch()
		stopped := make(chan struct{})
		go func() {
			select {
			case s := <-signals:
				cancel(&signalError{s})
				time.Sleep(moment)
				die(s)
			case <-stopped:
			}
		}()
		return sync.OnceFunc(func() { release(); close(stopped) })
	}
	stop := watch()
	sys.Signals = func() (<-chan os.Signal, func()) {
		caught, release := catch()
		stop()
		return caught, sync.OnceFunc(func() { stop = watch(); release() })
	}
	return ctx, sys
}

// die ends the process as the signal does by itself, which shells look at. SIGQUIT would
// have Go's runtime print its stacks, or the kernel write a core.
func die(s os.Signal) {
	if s != syscall.SIGQUIT {
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		time.Sleep(moment)
	}
	os.Exit(ends[s])
}

// caughtBy is the signal that ended a context, nil if none did.
func caughtBy(ctx context.Context) os.Signal {
	if caught, ok := errors.AsType[*signalError](context.Cause(ctx)); ok {
		return caught.signal
	}
	return nil
}

// finishing is said at the first signal, where nothing better is known.
const finishing = "finishing what is running; press Ctrl-C again to stop at once"

// interrupts returns two contexts: drain ends with the first signal of those
// that end a command, hard with the second. What prepares for something, or takes too
// long to wait for, is under drain. A third signal ends the process. stop releases the
// watcher.
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
		release()
	}()
	return drain, hard, func() { release(); end(); cancelDrain(nil); cancelHard(nil) }
}

// interrupted turns err into the exit code of the signal that ended ctx, if one
// did; what it says has been said.
func interrupted(ctx context.Context, err error) error {
	caught := caughtBy(ctx)
	if caught == nil {
		return err
	}
	if err = ignoreCancel(err); err != nil {
		return &Error{Err: err, Code: ends[caught], Hint: hintOf(err)}
	}
	return exitWith(ends[caught])
}
