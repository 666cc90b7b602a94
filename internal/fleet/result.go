// Package fleet holds the parts of a run on many hosts: the Command, the Attempt that an Executor
// makes on a host, its Outcome, the Result, and the Sink that receives all of it.
//
// It knows no SSH, starts nothing and prints nothing: engines below ssh are Executors, package
// fanout runs, and prefix lines, gathered output, NDJSON and files are Sinks made elsewhere.
package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/host"
)

// Phase is how far a host got. The order is the order of a login; a Result holds the last phase
// that was entered.
type Phase uint8

// The phases of one host.
const (
	PhaseQueued  Phase = iota // not started
	PhaseDNS                  // resolving the name
	PhaseConnect              // TCP connect
	PhaseKex                  // banners and key exchange
	PhaseHostkey              // the server's key is being checked
	PhaseAuth                 // key exchange done; authenticating
	PhaseExec                 // authenticated; the command is requested or running
	PhaseExit                 // the command's end is known
	phases       = int(PhaseExit) + 1
)

var phaseNames = [phases]string{"queued", "dns", "connect", "kex", "hostkey", "auth", "exec", "exit"}

func (p Phase) String() string { return nameOf(phaseNames[:], int(p)) }

// MarshalText returns the word of String.
func (p Phase) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads the word of String; any other word is an error.
func (p *Phase) UnmarshalText(word []byte) error { return parseName(p, phaseNames[:], word) }

// Ran says whether the command was executed. Unknown is honest: the request was sent, and the
// connection died before the server reported that it had begun, or how it had ended.
type Ran uint8

// The three answers to "did it run".
const (
	RanNo Ran = iota
	RanYes
	RanUnknown
)

var ranNames = [...]string{"no", "yes", "unknown"}

func (r Ran) String() string { return nameOf(ranNames[:], int(r)) }

// MarshalText returns the word of String.
func (r Ran) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads the word of String; any other word is an error.
func (r *Ran) UnmarshalText(word []byte) error { return parseName(r, ranNames[:], word) }

// Stream is the origin of output.
type Stream uint8

// The two output streams of a remote command.
const (
	Stdout Stream = iota
	Stderr
)

var streamNames = [...]string{"stdout", "stderr"}

func (s Stream) String() string { return nameOf(streamNames[:], int(s)) }

// MarshalText returns the word of String.
func (s Stream) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word of String; any other word is an error.
func (s *Stream) UnmarshalText(word []byte) error { return parseName(s, streamNames[:], word) }

// Event is a piece of output. Data is as it came: not cut at lines, not cleaned, at most 64 KiB. It
// is valid only during the call that hands it over.
type Event struct {
	Index  int    // of the host, in the order given to Run
	Host   string // host.Host.String of it
	Stream Stream
	Data   []byte
	Time   time.Time // when it came; zero where that is unknown
}

// Class is the reason why a host did not end with an exit code. Zero means that it did.
type Class uint8

// The classes of failure.
const (
	NoFailure      Class = iota
	NameFailed           // DNS
	Refused              // the port refuses
	TimedOut             // no answer within the connect timeout
	Unroutable           // no route, network down
	Throttled            // closed before key exchange, again and again
	NotSSH               // the peer does not speak SSH 2
	NoCommonAlgo         // no algorithm in common
	HostKeyUnknown       // strict checking and no such key known
	HostKeyChanged       // a different key is known
	HostKeyRevoked       // the key, or its certificate's authority, is revoked
	HostKeyWeak          // an RSA key shorter than RequiredRSASize
	AuthFailed           // no method or key was accepted
	Lost                 // the connection ended before the command's end was known
	CommandTimeout       // --timeout: signalled, then closed
	OutputLimit          // --max-output: the same
	NoStatus             // the channel closed without exit status or signal
	ExecRefused          // logged in, but the server refused the session or the command
	Privilege            // sudo did not run the command
	Local                // our own side: files, agent, configuration, engine
	Cancelled            // the run was interrupted
)

var classNames = [...]string{
	"", "dns", "refused", "timeout", "unroutable", "throttled", "not_ssh", "no_common_algorithm",
	"hostkey_unknown", "hostkey_changed", "hostkey_revoked", "hostkey_weak", "auth", "lost", "command_timeout",
	"output_limit", "no_status", "exec_refused", "privilege", "local", "cancelled",
}

func (c Class) String() string { return nameOf(classNames[:], int(c)) }

// MarshalText returns the word of String.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads the word of String; any other word is an error.
func (c *Class) UnmarshalText(word []byte) error { return parseName(c, classNames[:], word) }

// Status is the short form of a result for the summary line and --rerun.
type Status uint8

// The statuses. Failed means that the command ran or may have run and did not end with 0, or that
// sudo did not run it; Unreachable that it provably did not run.
const (
	OK Status = iota
	Failed
	Unreachable
	NotStarted // the run ended before this host's turn or while it was logging in
)

var statusNames = [...]string{"ok", "failed", "unreachable", "not_started"}

func (s Status) String() string { return nameOf(statusNames[:], int(s)) }

// MarshalText returns the word of String.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the word of String; any other word is an error.
func (s *Status) UnmarshalText(word []byte) error { return parseName(s, statusNames[:], word) }

// Result is the end of one host.
type Result struct {
	Outcome  // of the last attempt
	Index    int
	Host     host.Host
	Phase    Phase // the last phase entered
	Batch    int   // from 1; 0 where all start at once
	Attempts int   // connections tried, at least 1 once started

	Start    time.Time     // when the host's turn came
	Elapsed  time.Duration // from Start to the end
	Waited   time.Duration // of Elapsed: waiting for our own limits and back-off
	Spent    Spent         // time per phase of the last attempt
	OutBytes int64         // handed to the Sink
	ErrBytes int64

	Incomplete string // why not all output is where it was to go, "" if it is
}

// Spent is the time spent in each phase, indexed by Phase. PhaseExec covers the command itself;
// PhaseQueued and PhaseExit are always 0.
type Spent [phases]time.Duration

// End returns when the host ended, zero if that is unknown.
func (r *Result) End() time.Time {
	if r.Start.IsZero() {
		return r.Start
	}
	return r.Start.Add(r.Elapsed)
}

// Status derives the summary status.
func (r *Result) Status() Status {
	switch {
	case r.Phase == PhaseQueued && r.Attempts == 0, r.Ran == RanNo && r.Class == Cancelled:
		return NotStarted
	case r.Ran == RanNo && r.Class != Privilege:
		return Unreachable
	case r.Class == NoFailure && r.Exit == 0 && r.Signal == "":
		return OK
	}
	return Failed
}

// Set names the set of a run that the host is in, such as not-started. One of which nobody knows
// whether the command ran is in none of those that failed: a repetition may run it twice.
func (r *Result) Set() string {
	if r.Ran == RanUnknown {
		return r.Ran.String()
	}
	return strings.ReplaceAll(r.Status().String(), "_", "-")
}

// Start is the data of a run at its beginning.
type Start struct {
	ID      string    // names the run, "" where it has no name
	Time    time.Time // now
	Command string    // for people, "" omits it
	Hosts   []host.Host
	Phase   func(index int) Phase // of a host now, PhaseQueued between two tries; nil: unknown
}

// Batch is a part of a run.
type Batch struct {
	Number, Of int // from 1
	Hosts      int // in it
	Before     Summary
	Pause      time.Duration // between it and the next
	Begun      bool          // before, when somebody else had the run
}

// Declined is a Sink's error that stops a run before a batch, or before a host.
type Declined struct{ Why string }

func (e *Declined) Error() string { return e.Why }

// Sink receives all events, as one stream: Begin, then for each host Started, Output and Done, with
// Waiting between them, and End. Calls never overlap. An error (closed pipe) ends the run: Run
// cancels running commands and returns that error. A *LostOutput does not. Sinks that need only
// some of the events embed Nothing.
type Sink interface {
	// Begin comes first; after an error only End follows.
	Begin(Start) error
	// Batch comes before each batch of a run that has several. A *Declined stops the run there.
	Batch(Batch) error
	// Started reports that the connection to the host with this index begins. A host that is never
	// started has none; one that is tried again has one. After a *Declined neither it nor another
	// one is started.
	Started(index int) error
	Output(Event) error
	// Done comes exactly once per host, after all of its Output. so counts the hosts that have
	// ended, this one too; it does not include losses during this call.
	Done(r Result, so Summary) error
	// Waiting reports how many hosts wait for another try, when that changes.
	Waiting(hosts int)
	// End comes last, also after an error.
	End(Summary) error
}

// Nothing is a Sink that does nothing, for embedding.
type Nothing struct{}

var _ Sink = Nothing{}

// Begin does nothing.
func (Nothing) Begin(Start) error { return nil }

// Batch does nothing.
func (Nothing) Batch(Batch) error { return nil }

// Started does nothing.
func (Nothing) Started(int) error { return nil }

// Output does nothing.
func (Nothing) Output(Event) error { return nil }

// Done does nothing.
func (Nothing) Done(Result, Summary) error { return nil }

// Waiting does nothing.
func (Nothing) Waiting(int) {}

// End does nothing.
func (Nothing) End(Summary) error { return nil }

// LostOutput is a Sink's error that costs output but not the run: there is no room for it. The
// host's Result and the Summary report it.
type LostOutput struct{ Err error }

func (e *LostOutput) Error() string { return e.Err.Error() }
func (e *LostOutput) Unwrap() error { return e.Err }

// Summary counts the hosts of a run that have ended.
type Summary struct {
	OK, Failed, Unreachable, NotStarted int

	Incomplete int   // of them, hosts whose output is incomplete
	Lost       error // why output was lost first, nil if none was; output that was cut off is not lost

	Stopped string // why the rest was not started, "" if there was no reason to stop

	MaxExit int   // largest exit code seen; 255 for a host without one
	Unkept  int64 // bytes of output for which a record had no room
	Elapsed time.Duration
}

// Add counts one result.
func (s *Summary) Add(r *Result) {
	if r.Incomplete != "" {
		s.Incomplete++
	}
	switch r.Status() {
	case OK:
		s.OK++
	case Failed:
		s.Failed++
	case Unreachable:
		s.Unreachable++
	case NotStarted:
		s.NotStarted++
		return
	}
	code := r.Exit
	if code < 0 {
		code = 255
	}
	s.MaxExit = max(s.MaxExit, code)
}

// Total is the number of hosts counted.
func (s *Summary) Total() int { return s.OK + s.Failed + s.Unreachable + s.NotStarted }

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "?"
}

func parseName[T ~uint8](value *T, names []string, word []byte) error {
	i := slices.Index(names, string(word))
	if i < 0 {
		return fmt.Errorf("%q is a word that this version does not know", word)
	}
	*value = T(i)
	return nil
}
