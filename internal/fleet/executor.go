package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
)

// Command is run by every host.
type Command struct {
	// Line is passed unchanged to the remote login shell, like ssh's arguments joined by spaces.
	Line string
	// Text is the command for people; "" omits it.
	Text string
	// Input is the remote standard input; nil is an empty one.
	Input Input
	// Env is NAME=value, sent to the server without waiting; most ignore it.
	Env []string
	// Terminal gives the command a terminal, and as its input the end of one. Input must be nil.
	Terminal bool
	// Dialogue, if set, talks to the subsystem named Line (RFC 4254 section 6.5), and no command is
	// run.
	Dialogue Dialogue
	// Program is set for a Dialogue with the command Line instead of a subsystem.
	Program bool
}

// EndOfInput is what a terminal takes for the end of the input: ^D.
const EndOfInput = "\x04"

// Input is the input of a command: each host reads it from its beginning, at its own pace.
type Input interface {
	// Reader starts at the beginning. Its Close ends a Read that waits.
	Reader() io.ReadCloser
}

// Dialogue talks to a subsystem of a host, such as sftp, and returns soon after ctx has ended. An
// error is the host's failure, exit code 1, unless the connection was lost.
type Dialogue func(ctx context.Context, h host.Host, c Channel) error

// Channel is the subsystem with the other needs of a Dialogue.
type Channel interface {
	io.ReadWriteCloser
	// Open talks to another subsystem, or to the same one once more, over the same connection at
	// the same time. A channel that nobody reads does not stop the others. ErrNoExec if that is
	// impossible.
	Open(ctx context.Context, subsystem string) (io.ReadWriteCloser, error)
	// Exec runs a command line over the same connection with input, which is not read any more when
	// it returns, and returns the command's standard output, at most MaxExec; ErrNoExec if that is
	// impossible.
	Exec(ctx context.Context, line string, input io.Reader) ([]byte, error)
	// Output passes on the host's output, for people; it may be called concurrently.
	Output(s Stream, data []byte) error
	// Banner returns the last line that the server sent for people to read before the session
	// began, "" if it sent none or that is unknown.
	Banner() string
}

// ErrNoExec says that no second command runs over a connection, ErrOneSession that no host could
// change that.
var (
	ErrNoExec     = errors.New("no second command over this connection")
	ErrOneSession = fmt.Errorf("%w: its engine opens one session", ErrNoExec)
)

// MaxExec bounds the output of the command of an Exec.
const MaxExec = 16 << 20

// Executed returns the result of an Exec whose command has written out, or more than MaxExec.
func Executed(ctx context.Context, out []byte, exit int) ([]byte, error) {
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case len(out) > MaxExec:
		return nil, errors.New("the command writes too much")
	case exit != 0:
		return out, fmt.Errorf("exit %d", exit)
	}
	return out, nil
}

// Executor runs a command on one host. Its methods are called concurrently.
type Executor interface {
	// FDs is how many file descriptors one running host may need at most.
	FDs() int
	// Execute connects and runs the command once, without retrying. It reports every phase and all
	// output to the Attempt, and calls Admit before it opens a connection to a server, or uses one
	// that is open.
	//
	// When ctx ends, a running command is ended politely: signal, short grace, close. When
	// a.Abort() ends, everything is dropped at once.
	Execute(ctx context.Context, h host.Host, cmd Command, a Attempt) Outcome
}

// Attempt is the Executor's connection back to the run, for one try of one host. Its methods are
// listed in the order of an attempt, and may be called concurrently.
type Attempt interface {
	// Index returns the place of the host in the list given to the run.
	Index() int
	// Host returns the host of the attempt.
	Host() host.Host
	// Abort ends when everything is to be dropped at once.
	Abort() context.Context
	// Through passes all output through f, which returns the part to show and may be called for
	// both streams at once; nil shows all.
	Through(f func(Stream, []byte) []byte)
	// Admit waits until a login at addr ("ip:port", or any other name of one server) may start, and
	// returns ctx's cause if that ends first. The permission ends with Reached(PhaseExec), with the
	// attempt, or with the next Admit; that of "" is of no login, and does not wait for
	// others: the connection is there, or the login waits for a person.
	Admit(ctx context.Context, addr string) error
	// Reached reports that a phase begins. Phases may be left out but not go back.
	Reached(Phase)
	// Distance reports the round trip to the server, by the answers of its kernel, which do not
	// depend on how busy it is; before PhaseHostkey.
	Distance(roundTrip time.Duration)
	// Alive reports that the server speaks SSH: from now on the login costs CPU.
	Alive()
	// Near reports whether the server answers as quickly as with few others under way, so that a
	// command may leave ahead of its answer. Where hosts that are down are retried it is false: of
	// a command that has left with a login that the server ends, nobody knows whether it runs.
	Near() bool
	// Output passes on a piece of output; data may be reused afterwards. An error means that nobody
	// wants more and that ctx is about to end.
	Output(s Stream, data []byte) error
	// OutputAt is Output that came at an earlier time.
	OutputAt(at time.Time, s Stream, data []byte) error
	// Phase returns the last phase reached.
	Phase() Phase
	// Talked reports whether there was output.
	Talked() bool
}

// Writer passes on what is written as output of an attempt. It drops an error: the attempt is about
// to end, and until then its source is drained.
type Writer struct {
	Attempt Attempt
	Stream  Stream
}

// Write passes on a piece.
func (w Writer) Write(p []byte) (int, error) {
	_ = w.Attempt.Output(w.Stream, p)
	return len(p), nil
}

// Outcome is the result of one attempt of an Executor.
type Outcome struct {
	Addr   string // address and port dialed, "" if it never came to that
	Engine string // "native" or "openssh"
	// Launcher is the name of the launcher whose outcome it is, "" for this process.
	Launcher string
	// Measured has the times, phases and tries that the launcher measured, and why output is
	// missing; nil for this process.
	Measured *Result
	Ran      Ran
	Class    Class
	Exit     int    // -1: none
	Signal   string // name without SIG, when a signal ended the command
	Err      string // one line without the host's name, "" when there is nothing to say
	Hint     string // the remedy, may be ""
	Note     string // shown on success and on failure, may be ""
	Cause    error  // the error below Err, or nil; for callers that need an errno
	// SlowDown says that the server (MaxStartups, penalties) or our own machine (ports,
	// descriptors) could not take the connection now. Then, and if it was too slow among others,
	// the host is tried again, if Ran is RanNo.
	SlowDown bool
	// Closed says that the server ended the login without an answer, as one does that boots or
	// shuts down (pam_nologin(8)).
	Closed bool
}

// The causes with which a context given to Execute may end.
var (
	ErrCommandTimeout = errors.New("command timed out")
	ErrOutputLimit    = errors.New("too much output")
	ErrInterrupted    = errors.New("interrupted")
	ErrFailFast       = errors.New("stopped because other hosts had failed")
)

// Stopped returns the class and the message of a command that the run itself ended, by the cause of
// its context.
func Stopped(cause error) (Class, string) {
	switch {
	case errors.Is(cause, ErrCommandTimeout):
		return CommandTimeout, "the command took longer than --timeout allows"
	case errors.Is(cause, ErrOutputLimit):
		return OutputLimit, "the command sent more output than allowed"
	case errors.Is(cause, ErrFailFast):
		return Cancelled, "ended because other hosts had failed"
	}
	return Cancelled, "interrupted while the command was running"
}

// Stop records that the run ended a command before its own end was known; Ran is known.
func (o *Outcome) Stop(cause error) {
	o.Class, o.Err = Stopped(cause)
	if o.Ran != RanYes && o.Class == Cancelled {
		o.Err = cause.Error()
	}
	if o.Ran != RanNo {
		o.Err += "; it may still run there"
	}
}

// Silent is the message about a connection that was given up because the server was silent.
const Silent = "Timeout, server not responding"

// Ended records the end of a running command. reported: the server has reported its status. lost
// describes how the connection was lost; "" if it was not. The end of ctx is that of the run.
func (o *Outcome) Ended(ctx context.Context, reported bool, lost string) {
	switch {
	case ctx.Err() != nil && !reported:
		o.Stop(context.Cause(ctx))
	case ctx.Err() != nil:
		o.Class, o.Err = Stopped(context.Cause(ctx))
	case reported:
	case lost == Silent:
		o.Class, o.Err = Lost, lost
	case lost != "":
		o.Class, o.Err = Lost, lost+" while the command was running"
		o.Hint = "the command may still run there, or have ended; --rerun leaves it out, --rerun failed,unknown includes it"
	default:
		o.Class, o.Err = NoStatus, "the server reported neither exit status nor signal"
	}
}

// Conversed records the end of a Dialogue: failure, its error, is the outcome, unless the run ended
// it, or the connection was lost, described by lost.
func (o *Outcome) Conversed(ctx context.Context, failure error, lost string) {
	switch {
	case ctx.Err() != nil:
		o.Class, o.Err = Stopped(context.Cause(ctx))
		o.Exit = -1
	case failure == nil:
	case lost != "":
		o.Class, o.Err, o.Exit = Lost, lost, -1
		o.Hint = "no file is left half written under its name; run the same command again to continue"
	default:
		o.Exit, o.Err, o.Hint = 1, termsafe.Line(failure.Error()), termsafe.Line(fault.HintOf(failure))
		if command, ok := errors.AsType[*CommandError](failure); ok {
			o.Exit = command.Exit
		}
	}
}

// CommandError is the failure of a Dialogue whose command on the host did not end with 0.
type CommandError struct{ Exit int }

func (e *CommandError) Error() string {
	return fmt.Sprintf("the copy is complete; its command ended with exit %d", e.Exit)
}

// Exhausted reports whether an error says that this machine has no more resources right now.
func Exhausted(err error) bool {
	for _, no := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EADDRNOTAVAIL, syscall.EAGAIN} {
		if errors.Is(err, no) {
			return true
		}
	}
	return false
}
