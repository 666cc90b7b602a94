package output

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
)

// Schema is the name and version of the records that JSON writes. Fields may be
// added under the same version; none changes its meaning.
const Schema = "sshpace.run/1"

// RunRecord begins a run. Set and How are for the history alone.
type RunRecord struct {
	Type    string `json:"type"`
	Schema  string `json:"schema"`
	ID      string `json:"id,omitempty"`
	Start   string `json:"start"`
	Command string `json:"command,omitempty"`
	Hosts   int    `json:"hosts"`
	Set     string `json:"set,omitempty"` // the hosts, folded, so that ten thousand take little room
	How     *How   `json:"how,omitempty"`
}

// StartRecord says that a connection to a host is being made.
type StartRecord struct {
	Type   string `json:"type"`
	Schema string `json:"schema"`
	Host   string `json:"host"`
}

// outputRecord is a line of output, or a piece of one.
type outputRecord struct {
	Type      string  `json:"type"`
	Schema    string  `json:"schema"`
	Host      string  `json:"host"`
	Stream    string  `json:"stream"`
	Text      *string `json:"text,omitempty"`
	Base64    string  `json:"base64,omitempty"`
	Continues bool    `json:"continues,omitempty"` // the record before it belongs to the same line
	EOL       *bool   `json:"eol,omitempty"`       // false: the stream ended without a newline here; else absent
}

// ResultRecord is one host's end.
type ResultRecord struct {
	Type     string `json:"type"`
	Schema   string `json:"schema"`
	Host     string `json:"host"`
	Label    string `json:"label,omitempty"`
	Addr     string `json:"addr,omitempty"`
	Engine   string `json:"engine,omitempty"`
	Status   string `json:"status"`          // ok, failed, unreachable, not_started
	Phase    string `json:"phase"`           // the last one entered
	Ran      string `json:"ran"`             // yes, no, unknown
	Class    string `json:"class,omitempty"` // of the failure
	Exit     *int   `json:"exit,omitempty"`  // absent when there is none
	Signal   string `json:"signal,omitempty"`
	Error    string `json:"error,omitempty"`
	Hint     string `json:"hint,omitempty"`
	Note     string `json:"note,omitempty"`  // to know however it ended
	Batch    int    `json:"batch,omitempty"` // from 1
	Attempts int    `json:"attempts"`

	Start     string           `json:"start,omitempty"`
	ElapsedNS int64            `json:"elapsed_ns"`
	WaitedNS  int64            `json:"waited_ns"` // of it: for our own limits and back-off
	PhasesNS  map[string]int64 `json:"phases_ns,omitempty"`
	OutBytes  int64            `json:"stdout_bytes"`
	ErrBytes  int64            `json:"stderr_bytes"`

	Incomplete string `json:"incomplete,omitempty"` // why output is missing
}

// SummaryRecord ends a run.
type SummaryRecord struct {
	Type        string `json:"type"`
	Schema      string `json:"schema"`
	OK          int    `json:"ok"`
	Failed      int    `json:"failed"`
	Unreachable int    `json:"unreachable"`
	NotStarted  int    `json:"not_started"`
	Incomplete  int    `json:"incomplete,omitempty"` // hosts whose output is
	Stopped     string `json:"stopped,omitempty"`    // why the rest was not started
	MaxExit     int    `json:"max_exit"`
	ElapsedNS   int64  `json:"elapsed_ns"`
}

// How is what it takes to do a run once more, beside hosts and command. The
// zero value is a command without input and without flags.
type How struct {
	Stdin   bool                `json:"stdin,omitempty"`   // the command read what our standard input held, which is not kept
	Files   bool                `json:"files,omitempty"`   // files were copied; Command only describes it
	Script  *Script             `json:"script,omitempty"`  // a local script was run; Command only describes it
	Flags   map[string][]string `json:"flags,omitempty"`   // flags that were given, by their long names
	Unkept  []string            `json:"unkept,omitempty"`  // names of options that were given and left out, since they may hold secrets
	Repeats string              `json:"repeats,omitempty"` // ID of the run that this one does again, on some of its hosts
}

// Script is a local script that was run on the hosts.
type Script struct {
	Path   string   `json:"path"`   // absolute
	SHA256 string   `json:"sha256"` // of its content, in hex
	Args   []string `json:"args,omitempty"`
}

func recordOf(r *fleet.Result) ResultRecord {
	rec := ResultRecord{
		Type: "result", Schema: Schema, Label: r.Host.Label, Addr: r.Addr, Engine: r.Engine,
		Status: r.Status().String(), Phase: r.Phase.String(), Ran: r.Ran.String(), Class: r.Class.String(),
		Signal: r.Signal, Error: r.Err, Hint: r.Hint, Note: r.Note, Batch: r.Batch, Attempts: r.Attempts,
		ElapsedNS: r.Elapsed.Nanoseconds(), WaitedNS: r.Waited.Nanoseconds(), OutBytes: r.OutBytes, ErrBytes: r.ErrBytes, Incomplete: r.Incomplete,
	}
	if r.Exit >= 0 && r.Class == fleet.NoFailure && r.Signal == "" {
		rec.Exit = &r.Exit
	}
	if !r.Start.IsZero() {
		rec.Start = stamp(r.Start)
	}
	for phase, spent := range r.Spent {
		if spent > 0 {
			if rec.PhasesNS == nil {
				rec.PhasesNS = map[string]int64{}
			}
			rec.PhasesNS[fleet.Phase(phase).String()] = spent.Nanoseconds()
		}
	}
	return rec
}

// Explain says in one safe line how a host ended, "" for one that ended well:
// "exit 3", "killed by signal TERM", "unreachable: connection refused", "output
// cut off after 1000 bytes".
func (r *ResultRecord) Explain() string {
	text := r.ended()
	if r.Incomplete == "" {
		return text
	}
	return strings.TrimPrefix(text+"; output "+r.missing(), "; ")
}

// missing says why output is not there: "cut off after 1000 bytes",
// "incomplete: no space left on device".
func (r *ResultRecord) missing() string {
	if r.Class == fleet.OutputLimit.String() {
		return r.Incomplete
	}
	return "incomplete: " + termsafe.Line(r.Incomplete)
}

func (r *ResultRecord) ended() string {
	reason := cmp.Or(termsafe.Line(r.Error), r.Class)
	switch {
	case r.Status == fleet.OK.String():
		return ""
	case r.Status == fleet.NotStarted.String():
		return "not started"
	case r.Class == "" && r.Signal != "":
		return "killed by signal " + termsafe.Line(r.Signal)
	case r.Exit != nil && r.Error == "": // a Dialogue has no exit status
		return fmt.Sprintf("exit %d", *r.Exit)
	case r.Status == fleet.Unreachable.String():
		return "unreachable: " + reason
	case r.Ran == fleet.RanUnknown.String():
		return reason + "; ran: unknown"
	}
	return reason
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
