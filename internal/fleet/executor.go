package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/ssh/admit"
)

// Command is what every host runs.
type Command struct {
	// Line is handed to the remote login shell as it is, like ssh does with its
	// arguments joined by spaces.
	Line string
	// Text is the command as people know it; "" where it is to be left out.
	Text string
	// Input is the remote standard input; nil is an empty one.
	Input Input
	// Env is NAME=value, asked of the server without waiting; most take none.
	Env []string
	// Dialogue, where set, is held with the subsystem named Line (RFC 4254
	// section 6.5), and no command is run.
	Dialogue Dialogue
}

// Input is what a command reads: each host from its beginning, at its own pace.
type Input interface {
	// Reader starts at the beginning. Its Close ends a Read that waits.
	Reader() io.ReadCloser
}

// Dialogue speaks with a subsystem of a host, such as sftp, and returns soon after
// ctx has ended. An error is the host's failure, exit code 1, unless the
// connection was lost.
type Dialogue func(ctx context.Context, h host.Host, c Channel) error

// Channel is the subsystem and what else a Dialogue needs of its host.
type Channel interface {
	io.ReadWriteCloser
	// Exec runs a command line over the same connection with input, which is not read
	// any more when it returns, and returns what the command writes to standard
	// output, at most MaxExec; ErrNoExec where that cannot be.
	Exec(ctx context.Context, line string, input io.Reader) ([]byte, error)
	// Output is the host's output, as people are to see it; it may be called
	// concurrently.
	Output(s Stream, data []byte) error
	// Banner is the last line that the server sent for people to read before the session
	// began, "" where it sent none or that is not known.
	Banner() string
}

// ErrNoExec says that no second command runs over a connection, ErrOneSession that this is so
// whatever the host allows.
var (
	ErrNoExec     = errors.New("no second command over this connection")
	ErrOneSession = fmt.Errorf("%w: its engine opens one session", ErrNoExec)
)

// MaxExec is what the command of an Exec may write.
const MaxExec = 16 << 20

// Executed says what an Exec returns of a command that has written out, or more than MaxExec.
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
	// Execute connects and runs the command once, without retrying. It tells the
	// Attempt about every phase and all output, and calls Admit before it opens a
	// connection to a server.
	//
	// When ctx ends, a running command is ended politely: signal, short grace,
	// close. When a.Abort() ends, everything is dropped at once.
	Execute(ctx context.Context, h host.Host, cmd Command, a *Attempt) Outcome
}

// Outcome is what an Executor knows at the end of one attempt.
type Outcome struct {
	Addr   string // address and port dialed, "" if it never came to that
	Engine string // "native" or "openssh"
	Ran    Ran
	Class  Class
	Exit   int    // -1: none
	Signal string // name without SIG, when a signal ended the command
	Err    string // one line without the host's name, "" when there is nothing to say
	Hint   string // what to do next, may be ""
	Note   string // what people should know however it ended, may be ""
	Cause  error  // behind Err, or nil; for callers that must know an errno
	// SlowDown says that the server (MaxStartups, penalties) or our own machine
	// (ports, descriptors) could not take the connection now. Then, and where it was
	// too slow among others, the host is tried again, if Ran is RanNo.
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
	errSinkFailed     = errors.New("output failed")
)

// Stopped says what became of a command that the run itself ended, by the cause
// with which its context ended.
func Stopped(cause error) (Class, string) {
	switch {
	case errors.Is(cause, ErrCommandTimeout):
		return CommandTimeout, "the command took longer than --timeout allows"
	case errors.Is(cause, ErrOutputLimit):
		return OutputLimit, "the command sent more output than allowed"
	}
	return Cancelled, "interrupted while the command was running"
}

// Stop says that the run ended a command before its own end was told; Ran is known.
func (o *Outcome) Stop(cause error) {
	o.Class, o.Err = Stopped(cause)
	if o.Ran != RanYes && o.Class == Cancelled {
		o.Err = cause.Error()
	}
	if o.Ran != RanNo {
		o.Err += "; it may still run there"
	}
}

// Silent is what is said of a connection that was given up because the server was silent.
const Silent = "Timeout, server not responding"

// Ended says how a command that was running has ended: the run ended it, the server told so,
// or the connection was lost, as lost says ("" where it was not).
func (o *Outcome) Ended(ctx context.Context, told bool, lost string) {
	switch {
	case ctx.Err() != nil && !told:
		o.Stop(context.Cause(ctx))
	case ctx.Err() != nil:
		o.Class, o.Err = Stopped(context.Cause(ctx))
	case told:
	case lost == Silent:
		o.Class, o.Err = Lost, lost
	case lost != "":
		o.Class, o.Err = Lost, lost+" while the command was running"
		o.Hint = "the command may go on there, or have ended; --rerun leaves it out unless told: --rerun failed,unknown"
	default:
		o.Class, o.Err = NoStatus, "the server told neither exit status nor signal"
	}
}

// Conversed says how a Dialogue has ended: what it says is the outcome, unless the run ended
// it, or the connection was lost.
func (o *Outcome) Conversed(ctx context.Context, said error, lost string) {
	switch {
	case ctx.Err() != nil:
		o.Class, o.Err = Stopped(context.Cause(ctx))
		o.Exit = -1
	case said == nil:
	case lost != "":
		o.Class, o.Err, o.Exit = Lost, lost, -1
		o.Hint = "no file is left half written under its name; the same again goes on from here"
	default:
		o.Exit, o.Err, o.Hint = 1, termsafe.Line(said.Error()), termsafe.Line(fault.HintOf(said))
	}
}

// Attempt is the Executor's line back to the run, for one try of one host.
type Attempt struct {
	run   *run
	index int
	host  host.Host
	name  string
	abort context.Context

	ticket     *admit.Ticket           // of the host
	endCommand context.CancelCauseFunc // ends ctx of this Execute

	mu        sync.Mutex
	phase     Phase
	since     time.Time // when phase was entered
	spent     Spent
	waited    time.Duration
	roundTrip time.Duration // to the server; 0 = unknown
	timer     *time.Timer   // the command timeout
	outBytes  int64
	errBytes  int64
	through   func(Stream, []byte) []byte // what becomes of output first; nil: nothing
	cut       bool                        // there was more output than MaxOutput
	turn      turn
}

// Index is the place of the host in the list given to Run.
func (a *Attempt) Index() int { return a.index }

// Host is the host of the attempt.
func (a *Attempt) Host() host.Host { return a.host }

// Abort ends when everything is to be dropped at once.
func (a *Attempt) Abort() context.Context { return a.abort }

// Admit waits until a login at addr ("ip:port", or any other name that stands
// for one server) may start, and returns ctx's cause if that ends first. The
// permission ends with Reached(PhaseExec), with the attempt, or with the next
// Admit.
func (a *Attempt) Admit(ctx context.Context, addr string) error {
	defer context.AfterFunc(a.run.starting, func() { a.endCommand(context.Cause(a.run.starting)) })()
	start := time.Now()
	err := a.ticket.Admit(ctx, addr)
	wait := time.Since(start)

	a.mu.Lock()
	a.waited += wait
	a.since = a.since.Add(wait) // waiting belongs to no phase
	a.mu.Unlock()

	if err == nil {
		a.beginTurn()
		a.run.started(a.index)
	}
	return err
}

// Reached says that a phase begins. Phases may be left out but not go back.
func (a *Attempt) Reached(p Phase) {
	if p >= PhaseExec { // a connection that was there already needs no Admit
		a.run.started(a.index)
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if p <= a.phase {
		return
	}
	a.spent[a.phase] += now.Sub(a.since)
	a.phase, a.since = p, now
	switch {
	case p >= PhaseExec:
		a.keepTurn()
		a.ticket.LoggedIn()
	case p == PhaseConnect:
		a.ticket.Reached(admit.Connecting)
	case p == PhaseKex:
		a.ticket.Reached(admit.Connected)
	case p == PhaseHostkey:
		a.ticket.KeyShown(a.spent[PhaseKex], a.roundTrip)
	}
	if limit := a.run.CommandTimeout; p == PhaseExec && limit > 0 {
		a.timer = time.AfterFunc(limit, func() { a.endCommand(ErrCommandTimeout) })
	}
}

// Phase is the last phase reached.
func (a *Attempt) Phase() Phase {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase
}

// Talked tells whether there was output.
func (a *Attempt) Talked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.outBytes+a.errBytes > 0
}

// Output hands over a piece of output; data may be reused afterwards. An error
// means that nobody wants more and that ctx is about to end.
func (a *Attempt) Output(s Stream, data []byte) error {
	a.mu.Lock()
	through := a.through
	a.mu.Unlock()
	if through != nil {
		data = through(s, data)
	}
	data, more := a.take(s, data)
	if len(data) > 0 {
		if err := a.run.output(Event{Index: a.index, Host: a.name, Stream: s, Data: data}); err != nil {
			return err
		}
	}
	if more {
		a.endCommand(ErrOutputLimit)
		return ErrOutputLimit
	}
	return nil
}

// Through lets all output pass through f, which returns what is to be shown and
// may be called for both streams at once; nil shows all.
func (a *Attempt) Through(f func(Stream, []byte) []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.through = f
}

// take counts a piece of output and returns as much of it as MaxOutput leaves
// room for; more tells whether there is more than that.
func (a *Attempt) take(s Stream, data []byte) (taken []byte, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if limit := a.run.MaxOutput; limit > 0 {
		if room := limit - a.outBytes - a.errBytes; int64(len(data)) > room {
			data, a.cut = data[:room], true
		}
	}
	if s == Stdout {
		a.outBytes += int64(len(data))
	} else {
		a.errBytes += int64(len(data))
	}
	return data, a.cut
}

// finish closes the books of the attempt and returns what they say.
func (a *Attempt) finish(o *Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent[a.phase] += time.Since(a.since)
	a.spent[PhaseQueued], a.spent[PhaseExit] = 0, 0
	a.keepTurn()
	if a.timer != nil {
		a.timer.Stop()
	}
	a.ticket.End(a.ending(o))
	if o.Class == Lost && o.Ran == RanYes && a.run.command.Dialogue == nil { // it began, and whether it came to its end nobody knows
		o.Ran = RanUnknown
	}
	if a.cut && o.Class == NoFailure { // it ended before it was ended
		o.Class, o.Err = Stopped(ErrOutputLimit)
	}
	if o.Class == OutputLimit {
		o.Hint = "give --max-output a larger SIZE, or 0 for any amount"
	}
}

// ending is what the ticket has to know of the outcome.
func (a *Attempt) ending(o *Outcome) (e admit.Ending) {
	late := (o.Class == TimedOut || o.Class == Lost) && o.Ran == RanNo && a.phase >= PhaseKex
	switch {
	case o.SlowDown:
		e = admit.TurnedAway
	case late:
		e = admit.Overdue
	case o.Class == Refused:
		e = admit.Refused
	}
	if o.Closed || o.Class == Refused || o.Class == Unroutable || o.Class == TimedOut && a.phase <= PhaseConnect {
		e |= admit.Down
	}
	return e
}

// Distance reports the round trip to the server, by the answers of its kernel,
// which do not depend on how busy it is.
func (a *Attempt) Distance(roundTrip time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roundTrip = roundTrip
}

// Alive reports that the server speaks SSH: from now on the login costs CPU.
func (a *Attempt) Alive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keepTurn()
	a.ticket.Reached(admit.Speaking)
}

// Near reports whether the server answers soon; see admit.Ticket.Near.
func (a *Attempt) Near() bool { return a.ticket.Near() }
