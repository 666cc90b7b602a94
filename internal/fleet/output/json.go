package output

import (
	"encoding/base64"
	"io"
	"time"
	"unicode/utf8"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
)

// JSON writes one JSON object a line: first `run`, then `start`, `output` and `result` as they
// come, last `summary`. A line of remote output is one `output` record, or several of which all but
// the first have `continues`; its newline is left out, a carriage return is not, and `eol` is false
// for a last line without newline. A result comes after all output of its host. Text outside UTF-8
// is in `base64` instead of `text`, so nothing is lost. Control characters, also those that JSON
// would allow, are written as \u escapes.
type JSON struct {
	fleet.Nothing
	w     io.Writer
	how   *How // nil: the records are not for doing the run again
	hosts []host.Host
	times bool      // output has the time when it came
	at    time.Time // of the output that is written
	lines HostLines
	err   error // the first one of writing; nothing is written after it
}

var _ fleet.Sink = (*JSON)(nil)

func newJSON(w io.Writer) *JSON {
	return &JSON{w: w, lines: HostLines{Lines: Lines{Max: defaultMaxLine, OnlyLF: true}}}
}

// NewRecord makes a JSON with all that a repetition of the run needs: the record of the history.
func NewRecord(w io.Writer, how How) *JSON {
	j := newJSON(w)
	j.how, j.times = &how, true
	return j
}

// Begin writes the run record.
func (j *JSON) Begin(s fleet.Start) error {
	j.hosts = s.Hosts
	rec := runRecord{Type: "run", Schema: Schema, ID: s.ID, Start: stamp(s.Time), Command: s.Command, Hosts: len(s.Hosts), How: j.how}
	if j.how != nil {
		var names []string
		own := map[string][]string{}
		for _, h := range s.Hosts {
			own[h.Settings] = append(own[h.Settings], j.name(h))
			names = append(names, j.name(h))
		}
		rec.Set, rec.Own = hostset.Fold(names), map[string]string{}
		for settings, names := range own {
			if settings != "" {
				rec.Own[settings] = hostset.Fold(names)
			}
		}
	}
	return j.write(rec)
}

// Started records that the connection to a host begins.
func (j *JSON) Started(index int) error {
	return Loss(j.write(startRecord{Type: "start", Schema: Schema, Host: j.name(j.hosts[index])}))
}

// Output writes the complete lines.
func (j *JSON) Output(e fleet.Event) error {
	name := e.Host
	if j.how != nil {
		name = j.name(j.hosts[e.Index])
	}
	j.at = e.Time
	j.lines.Feed(e, func(p Piece) { j.line(name, e.Stream, p) })
	return Loss(j.err)
}

// Done writes held output and the host's result.
func (j *JSON) Done(r fleet.Result, _ fleet.Summary) error {
	j.at = r.End()
	j.lines.End(r.Index, func(stream fleet.Stream, p Piece) { j.line(j.name(r.Host), stream, p) })
	rec := recordOf(&r)
	rec.Host = j.name(r.Host)
	return Loss(j.write(rec))
}

// name returns the name of a host: a repetition of the run needs its address, too.
func (j *JSON) name(h host.Host) string {
	if j.how != nil {
		return h.Exact()
	}
	return h.String()
}

// End writes the last record.
func (j *JSON) End(s fleet.Summary) error {
	return j.write(summaryRecord{
		Type: "summary", Schema: Schema, OK: s.OK, Failed: s.Failed, Unreachable: s.Unreachable,
		NotStarted: s.NotStarted, Incomplete: s.Incomplete, Stopped: s.Stopped, MaxExit: s.MaxExit, ElapsedNS: s.Elapsed.Nanoseconds(), Unkept: s.Unkept,
	})
}

func (j *JSON) line(host string, stream fleet.Stream, p Piece) {
	rec := outputRecord{Type: "output", Schema: Schema, Host: host, Stream: stream, Continues: p.Continues}
	if j.times && !j.at.IsZero() {
		rec.Time = stamp(j.at)
	}
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

// write writes one record with one Write, unless an earlier one failed: half a record must be the
// last.
func (j *JSON) write(rec any) error {
	if j.err != nil {
		return j.err
	}
	j.err = termsafe.WriteJSON(j.w, rec, "")
	return j.err
}
