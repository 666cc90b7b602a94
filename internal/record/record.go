package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"reflect"
	"slices"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/sys/journal"
)

// Record is one line of a file: exactly one field is set. A file starts with its Campaign and
// Environment; Trials and Samples alternate after that, a Sample after its Trial; Findings, Ends
// and Measurements may stand anywhere. See doc/record.md.
type Record struct {
	Campaign    *Campaign     `json:"campaign,omitempty"`
	Environment *Environment  `json:"environment,omitempty"`
	Trial       *Trial        `json:"trial,omitempty"`
	Sample      *Sample       `json:"sample,omitempty"`
	Finding     *Finding      `json:"finding,omitempty"`
	End         *End          `json:"end,omitempty"`
	Measurement *Measurement  `json:"measurement,omitempty"`
	Slices      *Slices       `json:"slices,omitempty"`
	Method      *Method       `json:"method,omitempty"`
	LoginKind   *LoginKind    `json:"login_kind,omitempty"`
	LoginRun    *WatchedLogin `json:"login_run,omitempty"`
	Run         *Run          `json:"run,omitempty"`
	Limit       *Limit        `json:"limit,omitempty"`
	Thermal     *Thermal      `json:"thermal,omitempty"`
}

// Sink takes records as they happen.
type Sink func(Record) error

// Tee returns a sink that hands each record to all sinks in order and stops at the first error.
func Tee(sinks ...Sink) Sink {
	return func(r Record) error {
		for _, sink := range sinks {
			if err := sink(r); err != nil {
				return err
			}
		}
		return nil
	}
}

// ByteOrderMark is put by editors before the first line of a text in UTF-8. It does not belong to
// the text.
const ByteOrderMark = "\ufeff"

// FormatError says that a file is not a record file that this version reads.
type FormatError struct {
	Line int // 0: the file as a whole
	Why  string
}

func (e *FormatError) Error() string {
	if e.Line == 0 {
		return e.Why
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Why)
}

// Write returns a sink that appends records to w, one JSON object a line, each in a single Write
// call.
func Write(w io.Writer) Sink {
	return func(r Record) error {
		return termsafe.WriteJSON(w, r, "")
	}
}

// Read yields the records of a file. It ends after the first error: a *FormatError for a file that
// is foreign, damaged or of another version, or journal.ErrTruncated after the last whole record of
// a file that was cut. A first line that is cut is a *FormatError: such a file looks like a foreign
// one.
func Read(r io.Reader) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		n := 0
		for line, err := range journal.Lines(r) {
			n++
			if n == 1 {
				line = bytes.TrimPrefix(line, []byte(ByteOrderMark))
			}
			if err != nil && (n > 1 || !errors.Is(err, journal.ErrTruncated)) {
				yield(Record{}, err)
				return
			}
			record, err := decode(line, n)
			if !yield(record, err) || err != nil {
				return
			}
		}
		if n == 0 {
			yield(Record{}, &FormatError{Why: "the file is empty"})
		}
	}
}

// decode reads one line and checks that it is one record.
func decode(line []byte, n int) (Record, error) {
	var r Record
	if err := json.Unmarshal(line, &r); err != nil {
		return r, &FormatError{n, "not a record: " + err.Error()}
	}
	set, kinds := 0, reflect.ValueOf(r)
	for i := range kinds.NumField() {
		if !kinds.Field(i).IsNil() {
			set++
		}
	}
	switch {
	case n == 1 && r.Campaign == nil:
		return r, &FormatError{n, "not a record file of sshpace: the first line is not a campaign"}
	case n > 1 && r.Campaign != nil:
		return r, &FormatError{n, "a second campaign: a file holds one run; compare two files instead"}
	case r.Campaign != nil && r.Campaign.Format > FormatVersion:
		return r, &FormatError{n, fmt.Sprintf("format %d is newer than this version reads (%d); update sshpace", r.Campaign.Format, FormatVersion)}
	case r.Campaign != nil && r.Campaign.Format < 1:
		return r, &FormatError{n, "the campaign has no format version"}
	case r.Campaign != nil && r.Campaign.Format < FormatVersion:
		return r, &FormatError{n, fmt.Sprintf("format %d is no longer read, only %d; measure again", r.Campaign.Format, FormatVersion)}
	case set == 0:
		return r, &FormatError{n, "no kind of record that this version knows: another version of sshpace wrote it; measure again"}
	case set != 1:
		return r, &FormatError{n, fmt.Sprintf("%d kinds of record on one line, want one", set)}
	}
	return r, nil
}

// File is a whole record file in memory.
type File struct {
	Campaign     Campaign
	Environment  Environment
	Trials       map[int]Trial // by ID
	Samples      []Sample      // in file order
	Findings     []Finding
	Ended        string         // reason of the last end of the run; "" unknown
	Measurements []Measurement  // in file order
	Slices       []Slices       // in file order
	Methods      []Method       // in file order
	LoginKinds   []LoginKind    // in file order
	LoginRuns    []WatchedLogin // in file order
	Runs         []Run          // in file order
	Limits       []Limit        // in file order
	Thermals     []Thermal      // in file order
	Truncated    bool           // the last line was cut off
}

// Load reads a whole file. A cut last line is not an error but noted. A sample whose trial does not
// come before it is an error, because its meaning is unknown.
func Load(r io.Reader) (*File, error) {
	f := &File{Trials: map[int]Trial{}}
	sampled := map[int]bool{}
	line := 0
	for record, err := range Read(r) {
		line++
		if errors.Is(err, journal.ErrTruncated) {
			f.Truncated = true
			break
		}
		if err != nil {
			return nil, err
		}
		if s := record.Sample; s != nil {
			if _, known := f.Trials[s.Trial]; !known {
				return nil, &FormatError{line, fmt.Sprintf("a sample of trial %d, which is not in the file", s.Trial)}
			}
			if sampled[s.Trial] {
				return nil, &FormatError{line, fmt.Sprintf("a second sample of trial %d: the same records twice would look like more evidence", s.Trial)}
			}
			sampled[s.Trial] = true
		}
		if r := record.Run; r != nil && !slices.ContainsFunc(f.Methods, func(m Method) bool { return m.ID == r.Method }) {
			return nil, &FormatError{line, fmt.Sprintf("a run of method %d, which is not in the file", r.Method)}
		}
		if l := record.LoginRun; l != nil && !slices.ContainsFunc(f.LoginKinds, func(k LoginKind) bool { return k.ID == l.Kind }) {
			return nil, &FormatError{line, fmt.Sprintf("a login of kind %d, which is not in the file", l.Kind)}
		}
		f.add(record)
	}
	return f, nil
}

// Records yields the content of the file in an order in which Load reads it.
func (f *File) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		next := true
		each := func(r Record) { next = next && yield(r) }
		each(Record{Campaign: &f.Campaign})
		each(Record{Environment: &f.Environment})
		for _, id := range slices.Sorted(maps.Keys(f.Trials)) {
			trial := f.Trials[id]
			each(Record{Trial: &trial})
		}
		several(each, f.Samples, func(x *Sample) Record { return Record{Sample: x} })
		several(each, f.Slices, func(x *Slices) Record { return Record{Slices: x} })
		several(each, f.Methods, func(x *Method) Record { return Record{Method: x} })
		several(each, f.Runs, func(x *Run) Record { return Record{Run: x} })
		several(each, f.LoginKinds, func(x *LoginKind) Record { return Record{LoginKind: x} })
		several(each, f.LoginRuns, func(x *WatchedLogin) Record { return Record{LoginRun: x} })
		several(each, f.Limits, func(x *Limit) Record { return Record{Limit: x} })
		several(each, f.Thermals, func(x *Thermal) Record { return Record{Thermal: x} })
		several(each, f.Measurements, func(x *Measurement) Record { return Record{Measurement: x} })
		several(each, f.Findings, func(x *Finding) Record { return Record{Finding: x} })
		if f.Ended != "" {
			each(Record{End: &End{f.Ended}})
		}
	}
}

// several calls each for all records of one kind.
func several[T any](each func(Record), all []T, wrap func(*T) Record) {
	for i := range all {
		each(wrap(&all[i]))
	}
}

// Results yields every trial that has a sample, with the sample, in the order of the samples.
func (f *File) Results() iter.Seq2[Trial, Sample] {
	return func(yield func(Trial, Sample) bool) {
		for _, s := range f.Samples {
			if t, known := f.Trials[s.Trial]; known && !yield(t, s) {
				return
			}
		}
	}
}

// Sink returns a sink that adds records to the file in memory.
func (f *File) Sink() Sink {
	return func(r Record) error {
		f.add(r)
		return nil
	}
}

func (f *File) add(r Record) {
	switch {
	case r.Campaign != nil:
		f.Campaign = *r.Campaign
	case r.Environment != nil:
		f.Environment = *r.Environment
	case r.Trial != nil:
		f.Trials[r.Trial.ID] = *r.Trial
	case r.Sample != nil:
		f.Samples = append(f.Samples, *r.Sample)
	case r.End != nil:
		f.Ended = r.End.Why
	case r.Finding != nil:
		f.Findings = append(f.Findings, *r.Finding)
	case r.Measurement != nil:
		f.Measurements = append(f.Measurements, *r.Measurement)
	case r.Slices != nil:
		f.Slices = append(f.Slices, *r.Slices)
	case r.Method != nil:
		f.Methods = append(f.Methods, *r.Method)
	case r.Run != nil:
		f.Runs = append(f.Runs, *r.Run)
	case r.LoginKind != nil:
		f.LoginKinds = append(f.LoginKinds, *r.LoginKind)
	case r.LoginRun != nil:
		f.LoginRuns = append(f.LoginRuns, *r.LoginRun)
	case r.Limit != nil:
		f.Limits = append(f.Limits, *r.Limit)
	case r.Thermal != nil:
		f.Thermals = append(f.Thermals, *r.Thermal)
	}
}

// Measured returns the time that the measurements of the file took: parallel logins count once, and
// breaks before a run was resumed not at all.
func (f *File) Measured() time.Duration {
	type span struct{ from, to time.Time }
	var spans []span
	for _, s := range f.Samples {
		spans = append(spans, span{s.Start, s.Start.Add(s.ElapsedNS)})
	}
	for _, batch := range f.Slices {
		if n := len(batch.Slices); n > 0 {
			last := batch.Slices[n-1]
			spans = append(spans, span{batch.Start, batch.Start.Add(last.StartNS + last.WallNS)})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return a.from.Compare(b.from) })
	total, seen := time.Duration(0), time.Time{}
	for _, s := range spans {
		if s.from.Before(seen) {
			s.from = seen
		}
		if s.to.After(s.from) {
			total, seen = total+s.to.Sub(s.from), s.to
		}
	}
	return total
}
