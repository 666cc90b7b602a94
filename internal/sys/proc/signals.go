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

// SignalError is the cause of a context that a signal ended.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return e.Signal.String() }

// ExitOf returns the exit code of a command that a signal ended, as in shells.
func ExitOf(s os.Signal) int { return 128 + int(s.(syscall.Signal)) }

// CaughtBy returns the signal that ended a context, nil if none did.
func CaughtBy(ctx context.Context) os.Signal {
	if caught, ok := errors.AsType[*SignalError](context.Cause(ctx)); ok {
		return caught.Signal
	}
	return nil
}

// IgnoreSignals makes this process ignore the signals; something else ends it.
func IgnoreSignals() { signal.Ignore(deadly...) }

// Signals begins to catch the signals that end a command, until stop; nil catches none.
type Signals func() (caught <-chan os.Signal, stop func())

// CatchSignals catches the signals of the process. A signal that was ignored at the start of the
// program stays ignored, as nohup(1) and shells that start a job in the background require.
func CatchSignals() (caught <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 2)
	for _, s := range deadly {
		if !signal.Ignored(s) {
			signal.Notify(c, s)
		}
	}
	return c, func() { signal.Stop(c) }
}

// Catch begins to catch.
func (s Signals) Catch() (caught <-chan os.Signal, stop func()) {
	if s == nil {
		return nil, func() {}
	}
	return s()
}

// moment is the time for a command to end its children when a signal arrives that the command does
// not handle.
const moment = 250 * time.Millisecond

// Until returns a context that ends with the first signal that a command does not handle; a moment
// later the signal ends the process. By then the users of the context have ended their children;
// anything that waits for something else, such as a pipe that nobody writes to, is not waited for.
// While a command has asked for signals, by the returned Signals, they are its own.
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

// OutliveHangup makes this process go on after SIGHUP. Programs that it starts get it as usual.
func OutliveHangup() {
	signal.Ignore(syscall.SIGHUP)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
}

// Die ends the process as the signal itself does, which shells check. SIGQUIT would make Go's
// runtime print its stacks, or the kernel write a core.
func Die(s os.Signal) {
	if s != syscall.SIGQUIT {
		signal.Reset(s)
		_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
		time.Sleep(moment)
	}
	os.Exit(ExitOf(s))
}

// Interrupts returns two contexts: drain ends with the first signal, for which first is called,
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
