package output

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
)

// Schema is the name and version of the records that JSON writes. Fields may be added under the
// same version; none changes its meaning.
const Schema = "sshpace.run/1"

// runRecord begins a run. Set, Own and How are for the history alone.
type runRecord struct {
	Type    string `json:"type"`
	Schema  string `json:"schema"`
	ID      string `json:"id,omitempty"`
	Start   string `json:"start"`
	Command string `json:"command,omitempty"`
	Hosts   int    `json:"hosts"`
	Set     string `json:"set,omitempty"` // the hosts, folded, so that ten thousand take little room
	// Own holds settings of an inventory, with the folded hosts that have them.
	Own map[string]string `json:"own,omitempty"`
	How *How              `json:"how,omitempty"`
}

// startRecord says that the connection to a host begins.
type startRecord struct {
	Type   string `json:"type"`
	Schema string `json:"schema"`
	Host   string `json:"host"`
}

// outputRecord is a line of output, or a piece of one.
type outputRecord struct {
	Type      string       `json:"type"`
	Schema    string       `json:"schema"`
	Host      string       `json:"host"`
	Stream    fleet.Stream `json:"stream"`
	Time      string       `json:"time,omitempty"` // when the end of the line came
	Text      *string      `json:"text,omitempty"`
	Base64    string       `json:"base64,omitempty"`
	Continues bool         `json:"continues,omitempty"` // the record before it belongs to the same line
	EOL       *bool        `json:"eol,omitempty"`       // false: the stream ended without a newline here; otherwise absent
}

// resultRecord is one host's end.
type resultRecord struct {
	Type     string       `json:"type"`
	Schema   string       `json:"schema"`
	Host     string       `json:"host"`
	Label    string       `json:"label,omitempty"`
	Addr     string       `json:"addr,omitempty"`
	Engine   string       `json:"engine,omitempty"`
	Launcher string       `json:"launcher,omitempty"` // whose result it is; absent: this machine's
	Status   fleet.Status `json:"status"`             // derived from the others
	Phase    fleet.Phase  `json:"phase"`              // the last one entered
	Ran      fleet.Ran    `json:"ran"`
	Class    fleet.Class  `json:"class,omitempty"` // of the failure
	Exit     *int         `json:"exit,omitempty"`  // absent when there is none
	Signal   string       `json:"signal,omitempty"`
	Error    string       `json:"error,omitempty"`
	Hint     string       `json:"hint,omitempty"`
	Note     string       `json:"note,omitempty"`  // shown on success and on failure
	Batch    int          `json:"batch,omitempty"` // from 1
	Attempts int          `json:"attempts"`

	Start     string        `json:"start,omitempty"`
	ElapsedNS int64         `json:"elapsed_ns"`
	WaitedNS  int64         `json:"waited_ns"` // of it: for our own limits and back-off
	PhasesNS  *phasesRecord `json:"phases_ns,omitempty"`
	OutBytes  int64         `json:"stdout_bytes"`
	ErrBytes  int64         `json:"stderr_bytes"`

	Incomplete string `json:"incomplete,omitempty"` // why output is missing
}

// phasesRecord has the time of each phase. A map takes twice as long to write and to read, which is
// a part of what a host costs.
type phasesRecord struct {
	Auth    int64 `json:"auth,omitempty"`
	Connect int64 `json:"connect,omitempty"`
	DNS     int64 `json:"dns,omitempty"`
	Exec    int64 `json:"exec,omitempty"`
	HostKey int64 `json:"hostkey,omitempty"`
	Kex     int64 `json:"kex,omitempty"`
}

// of returns the place of a phase, from PhaseDNS to PhaseExec.
func (p *phasesRecord) of(phase fleet.Phase) *int64 {
	return [...]*int64{&p.DNS, &p.Connect, &p.Kex, &p.HostKey, &p.Auth, &p.Exec}[phase-fleet.PhaseDNS]
}

// summaryRecord ends a run.
type summaryRecord struct {
	Type        string `json:"type"`
	Schema      string `json:"schema"`
	OK          int    `json:"ok"`
	Failed      int    `json:"failed"`
	Unreachable int    `json:"unreachable"`
	NotStarted  int    `json:"not_started"`
	Incomplete  int    `json:"incomplete,omitempty"` // hosts with incomplete output
	Stopped     string `json:"stopped,omitempty"`    // why the rest was not started
	MaxExit     int    `json:"max_exit"`
	ElapsedNS   int64  `json:"elapsed_ns"`
	Unkept      int64  `json:"unkept_bytes,omitempty"` // of output for which the record had no room
}

// How holds what a repetition of a run needs, besides hosts and command. The zero value is a
// command without input and without flags.
type How struct {
	Stdin   bool                `json:"stdin,omitempty"`   // the command read our standard input, which is not kept
	Files   bool                `json:"files,omitempty"`   // files were copied; Command only describes it
	Shell   bool                `json:"shell,omitempty"`   // the command was a line of a shell, which may depend on those before it
	Script  *Script             `json:"script,omitempty"`  // a local script was run; Command only describes it
	Flags   map[string][]string `json:"flags,omitempty"`   // flags that were given, by their long names
	Unkept  []string            `json:"unkept,omitempty"`  // names of given options that are not recorded, since they may hold secrets
	Repeats string              `json:"repeats,omitempty"` // ID of the run that this one does again, on some of its hosts
	Kept    int64               `json:"kept,omitempty"`    // bytes of output that the record may hold
	// Job is the random end of the ID of the job that a hub keeps, behind the ID of the run; ""
	// where this machine ran it.
	Job string `json:"job,omitempty"`
	// Detached is the process of a run without a terminal; nil: somebody had watched it.
	Detached *Process `json:"detached,omitempty"`
}

// Lasts reports whether the run goes on without the terminal on which it was started.
func (h *How) Lasts() bool { return h.Detached != nil || h.Job != "" }

// Process is one on a machine of the user's.
type Process struct {
	PID     int    `json:"pid"`
	Machine string `json:"machine"` // its name
}

// Script is a local script that was run on the hosts.
type Script struct {
	Path   string   `json:"path"`   // absolute
	SHA256 string   `json:"sha256"` // of its content, in hex
	Args   []string `json:"args,omitempty"`
}

func recordOf(r *fleet.Result) resultRecord {
	rec := resultRecord{
		Type: "result", Schema: Schema, Label: r.Host.Label, Addr: r.Addr, Engine: r.Engine, Launcher: r.Launcher,
		Status: r.Status(), Phase: r.Phase, Ran: r.Ran, Class: r.Class,
		Signal: r.Signal, Error: r.Err, Hint: r.Hint, Note: r.Note, Batch: r.Batch, Attempts: r.Attempts,
		ElapsedNS: r.Elapsed.Nanoseconds(), WaitedNS: r.Waited.Nanoseconds(), OutBytes: r.OutBytes, ErrBytes: r.ErrBytes, Incomplete: r.Incomplete,
	}
	if hasExit(r) {
		rec.Exit = &r.Exit
	}
	if !r.Start.IsZero() {
		rec.Start = stamp(r.Start)
	}
	var phases phasesRecord
	for phase := fleet.PhaseDNS; phase < fleet.PhaseExit; phase++ {
		*phases.of(phase) = r.Spent[phase].Nanoseconds()
	}
	if phases != (phasesRecord{}) {
		rec.PhasesNS = &phases
	}
	return rec
}

// result returns the end of a host as recordOf received it, without Index and Host.
func (rec *resultRecord) result() (r fleet.Result, err error) {
	r = fleet.Result{
		Outcome: fleet.Outcome{
			Addr: rec.Addr, Engine: rec.Engine, Launcher: rec.Launcher, Ran: rec.Ran, Class: rec.Class, Exit: -1,
			Signal: rec.Signal, Err: rec.Error, Hint: rec.Hint, Note: rec.Note,
		},
		Phase: rec.Phase, Batch: rec.Batch, Attempts: rec.Attempts,
		Elapsed: time.Duration(rec.ElapsedNS), Waited: time.Duration(rec.WaitedNS),
		OutBytes: rec.OutBytes, ErrBytes: rec.ErrBytes, Incomplete: rec.Incomplete,
	}
	if rec.Exit != nil {
		r.Exit = *rec.Exit
	}
	if rec.PhasesNS != nil {
		for phase := fleet.PhaseDNS; phase < fleet.PhaseExit; phase++ {
			r.Spent[phase] = time.Duration(*rec.PhasesNS.of(phase))
		}
	}
	if rec.Start != "" {
		r.Start, err = time.Parse(time.RFC3339Nano, rec.Start)
	}
	return r, err
}

// hasExit reports whether the command itself ended, with an exit status.
func hasExit(r *fleet.Result) bool {
	return r.Exit >= 0 && r.Class == fleet.NoFailure && r.Signal == ""
}

// Explain describes the end of a host in one safe line, "" for a successful one: "exit 3", "killed
// by signal TERM", "unreachable: connection refused", "output cut off after 1000 bytes".
func Explain(r *fleet.Result) string {
	text := ended(r)
	if r.Incomplete == "" {
		return text
	}
	return strings.TrimPrefix(text+"; output "+missing(r), "; ")
}

// missing explains missing output: "cut off after 1000 bytes", "incomplete: no space left on
// device".
func missing(r *fleet.Result) string {
	if r.Class == fleet.OutputLimit {
		return r.Incomplete
	}
	return "incomplete: " + termsafe.Line(r.Incomplete)
}

func ended(r *fleet.Result) string {
	reason := cmp.Or(termsafe.Line(r.Err), r.Class.String())
	switch status := r.Status(); {
	case status == fleet.OK:
		return ""
	case status == fleet.NotStarted:
		return "not started"
	case r.Class == fleet.NoFailure && r.Signal != "":
		return "killed by signal " + termsafe.Line(r.Signal)
	case hasExit(r) && r.Err == "": // a Dialogue has no exit status
		return fmt.Sprintf("exit %d", r.Exit)
	case status == fleet.Unreachable:
		return "unreachable: " + reason
	case r.Ran == fleet.RanUnknown:
		return reason + "; ran: unknown"
	}
	return reason
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
