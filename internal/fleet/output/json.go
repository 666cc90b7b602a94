package output

import (
	"encoding/base64"
	"io"
	"time"
	"unicode/utf8"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
)

// Schema is the name and version of the records that JSON writes. Fields may be
// added under the same version; none changes its meaning.
const Schema = "sshpace.run/1"

// RunInfo is what the first record says of the whole run.
type RunInfo struct {
	ID      string    // as in the history, "" without one
	Start   time.Time // when it began
	Command string    // "" where it is to be left out
	Hosts   int
}

// JSON writes one JSON object a line: first `run`, then `output` and `result` as
// they come, last `summary`. A line of remote output is one `output` record, or
// several of which all but the first have `continues`; its newline is left out,
// a carriage return is not, and `eol` is false for a last line without newline.
// A result comes after all output of its host. Text that is not UTF-8 is in
// `base64` instead of `text`, so nothing is lost. Control characters, also
// those that JSON would allow, are written as \u escapes.
type JSON struct {
	w    io.Writer
	live map[int]*[2]Lines
	err  error // the first one of writing; nothing is written after it
}

var _ fleet.Sink = (*JSON)(nil)

type runRecord struct {
	Type    string `json:"type"`
	Schema  string `json:"schema"`
	ID      string `json:"id,omitempty"`
	Start   string `json:"start"`
	Command string `json:"command,omitempty"`
	Hosts   int    `json:"hosts"`
}

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

// resultRecord is one host's end.
type resultRecord struct {
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
	Attempts int    `json:"attempts"`

	Start     string           `json:"start,omitempty"`
	ElapsedNS int64            `json:"elapsed_ns"`
	WaitedNS  int64            `json:"waited_ns"` // of it: for our own limits and back-off
	PhasesNS  map[string]int64 `json:"phases_ns,omitempty"`
	OutBytes  int64            `json:"stdout_bytes"`
	ErrBytes  int64            `json:"stderr_bytes"`

	Incomplete string `json:"incomplete,omitempty"` // why output is missing
}

type summaryRecord struct {
	Type        string `json:"type"`
	Schema      string `json:"schema"`
	OK          int    `json:"ok"`
	Failed      int    `json:"failed"`
	Unreachable int    `json:"unreachable"`
	NotStarted  int    `json:"not_started"`
	Incomplete  int    `json:"incomplete,omitempty"` // hosts whose output is
	MaxExit     int    `json:"max_exit"`
	ElapsedNS   int64  `json:"elapsed_ns"`
}

// NewJSON writes the run record and returns the sink.
func NewJSON(w io.Writer, info RunInfo) (*JSON, error) {
	j := &JSON{w: w, live: map[int]*[2]Lines{}}
	err := j.write(runRecord{
		Type: "run", Schema: Schema, ID: info.ID, Start: stamp(info.Start), Command: info.Command, Hosts: info.Hosts,
	})
	return j, err
}

// Output writes the lines that are complete.
func (j *JSON) Output(e fleet.Event) error {
	state := j.live[e.Index]
	if state == nil {
		state = &[2]Lines{{Max: defaultMaxLine, OnlyLF: true}, {Max: defaultMaxLine, OnlyLF: true}}
		j.live[e.Index] = state
	}
	state[e.Stream].Feed(e.Data, func(p Piece) { j.line(e.Host, e.Stream, p) })
	return Loss(j.err)
}

// Done writes what was held and the host's result.
func (j *JSON) Done(r fleet.Result) error {
	if state := j.live[r.Index]; state != nil {
		delete(j.live, r.Index)
		for stream := range state {
			state[stream].End(func(p Piece) { j.line(r.Host.String(), fleet.Stream(stream), p) })
		}
	}
	return Loss(j.write(recordOf(&r)))
}

// Summary writes the last record.
func (j *JSON) Summary(s fleet.Summary) error {
	return j.write(summaryRecord{
		Type: "summary", Schema: Schema, OK: s.OK, Failed: s.Failed, Unreachable: s.Unreachable,
		NotStarted: s.NotStarted, Incomplete: s.Incomplete, MaxExit: s.MaxExit, ElapsedNS: s.Elapsed.Nanoseconds(),
	})
}

func (j *JSON) line(host string, stream fleet.Stream, p Piece) {
	rec := outputRecord{Type: "output", Schema: Schema, Host: host, Stream: stream.String(), Continues: p.Continues}
	if p.Open {
		rec.EOL = new(bool)
	}
	if utf8.Valid(p.Text) {
		text := string(p.Text)
		rec.Text = &text
	} else {
		rec.Base64 = base64.StdEncoding.EncodeToString(p.Text)
	}
	j.write(rec) // which keeps the error
}

func recordOf(r *fleet.Result) resultRecord {
	rec := resultRecord{
		Type: "result", Schema: Schema, Host: r.Host.String(), Label: r.Host.Label, Addr: r.Addr, Engine: r.Engine,
		Status: r.Status().String(), Phase: r.Phase.String(), Ran: r.Ran.String(), Class: r.Class.String(),
		Signal: r.Signal, Error: r.Err, Hint: r.Hint, Attempts: r.Attempts,
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

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// write writes one record with one Write, unless one before it failed: half a
// record must be the last thing there is.
func (j *JSON) write(rec any) error {
	if j.err != nil {
		return j.err
	}
	j.err = termsafe.WriteJSON(j.w, rec, "")
	return j.err
}
