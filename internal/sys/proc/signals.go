package proc

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// deadly are the signals that end a command.
var deadly = []os.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM}

// SignalError is the reason of a context that a signal ended.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return e.Signal.String() }

// ExitOf is the exit code of what a signal ended, as shells have it.
func ExitOf(s os.Signal) int { return 128 + int(s.(syscall.Signal)) }

// CaughtBy is the signal that ended a context, nil if none did.
func CaughtBy(ctx context.Context) os.Signal {
	if caught, ok := errors.AsType[*SignalError](context.Cause(ctx)); ok {
		return caught.Signal
	}
	return nil
}

// IgnoreSignals leaves the end of this process to something else.
func IgnoreSignals() { signal.Ignore(deadly...) }

// Signals begins to catch the signals that end a command, until stop; nil catches none.
type Signals func() (caught <-chan os.Signal, stop func())

// CatchSignals catches those of the process. One that was ignored when the program began
// stays ignored, as nohup(1) and shells that start a job in the background want it.
func CatchSignals() (caught <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 2)
	for _, s := range deadly {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// Catch begins to.
func (s Signals) Catch() (caught <-chan os.Signal, stop func()) {
	if s == nil {
		return nil, func() {}
	}
	return s()
}

// moment is what a command has to end what it started, when a signal ends it that it has
// not asked for.
const moment = 250 * time.Millisecond

// Until returns a context that ends with the first signal that a command has not
// asked for; a moment later the signal ends the process. What waits under the context has
// ended what it started by then, and what waits for something else, such as a pipe that
// nobody writes to, is not waited for. While a command has asked for signals, by what is
// returned, they are its own.
func (s Signals) Until(parent context.Context) (context.Context, Signals) {
	if s == nil {
		return parent, nil
	}
	ctx, cancel := context.WithCancelCause(parent)
	watch := func() (stop func()) {
		signals, release := s()
		stopped := make(chan struct{})
		go func() {
			select {
			case s := <-signals:
				cancel(&SignalError{s})
				time.Sleep(moment)
				Die(s)
			case <-stopped:
			}
		}()
		return sync.OnceFunc(func() { release(); close(stopped) })
	}
	stop := watch()
	return ctx, func() (<-chan os.Signal, func()) {
		caught, release := s()
		stop()
		return caught, sync.OnceFunc(func() { stop = watch(); release() })
	}
}

// Die ends the process as the signal does by itself, which shells look at. SIGQUIT would
// have Go's runtime print its stacks, or the kernel write a core.
func Die(s os.Signal) {
	if s != syscall.SIGQUIT {
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		time.Sleep(moment)
	}
	os.Exit(ExitOf(s))
}

// Interrupts returns two contexts: drain ends with the first signal, which first is told of,
// hard with the second. A third one ends the process. stop releases the watcher.
func (s Signals) Interrupts(parent context.Context, first func()) (drain, hard context.Context, stop func()) {
	hard, cancelHard := context.WithCancelCause(parent)
	drain, cancelDrain := context.WithCancelCause(hard)
	watcher, end := context.WithCancel(parent)
	signals, release := s.Catch()
	go func() {
		for _, cancel := range []context.CancelCauseFunc{cancelDrain, cancelHard} {
			select {
			case s := <-signals:
				cancel(&SignalError{s})
				if context.Cause(hard) == nil {
					first()
				}
			case <-watcher.Done():
				return
			}
		}
		release()
	}()
	return drain, hard, func() { release(); end(); cancelDrain(nil); cancelHard(nil) }
}
