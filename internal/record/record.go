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
	"sync"
	"time"

	"sshpace/internal/base/termsafe"
	"sshpace/internal/sys/journal"
)

// Record is one line of a file. A file starts with its Campaign and Environment; Trials and Samples
// alternate after that, a Sample after its Trial; Readings follow their Subject; Findings, Ends and
// Measurements may stand anywhere. See doc/record.md.
type Record interface {
	kind() string // its key in a file
}

func (*Campaign) kind() string    { return "campaign" }
func (*Environment) kind() string { return "environment" }
func (*Trial) kind() string       { return "trial" }
func (*Sample) kind() string      { return "sample" }
func (*Slices) kind() string      { return "slices" }
func (*Subject) kind() string     { return "subject" }
func (*Reading) kind() string     { return "reading" }
func (*Host) kind() string        { return "host" }
func (*Limit) kind() string       { return "limit" }
func (*Thermal) kind() string     { return "thermal" }
func (*Measurement) kind() string { return "measurement" }
func (*Finding) kind() string     { return "finding" }
func (*End) kind() string         { return "end" }

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
		return termsafe.WriteJSON(w, map[string]Record{r.kind(): r}, "")
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
				yield(nil, err)
				return
			}
			record, err := decode(line, n)
			if !yield(record, err) || err != nil {
				return
			}
		}
		if n == 0 {
			yield(nil, &FormatError{Why: "the file is empty"})
		}
	}
}

// decode reads one line and checks that it is one record.
func decode(text []byte, n int) (Record, error) {
	keys := reflect.New(line())
	err := json.Unmarshal(text, keys.Interface())
	var set []Record
	for _, key := range keys.Elem().Fields() {
		if !key.IsNil() {
			set = append(set, key.Interface().(Record))
		}
	}
	if err == nil && len(set) == 0 {
		set = make([]Record, 1)
		set[0], err = older(text)
	}
	if err != nil {
		return nil, &FormatError{n, "not a record: " + err.Error()}
	}
	switch c, first := set[0].(*Campaign); {
	case n == 1 && !first:
		return nil, &FormatError{n, "not a record file of sshpace: the first line is not a campaign"}
	case n > 1 && first:
		return nil, &FormatError{n, "a second campaign: a file holds one run; compare two files instead"}
	case first && c.Format > FormatVersion:
		return nil, &FormatError{n, fmt.Sprintf("format %d is newer than this version reads (%d); update sshpace", c.Format, FormatVersion)}
	case first && c.Format < 1:
		return nil, &FormatError{n, "the campaign has no format version"}
	case first && c.Format < oldest:
		return nil, &FormatError{n, fmt.Sprintf("format %d is no longer read, only %d and later; measure again", c.Format, oldest)}
	case set[0] == nil:
		return nil, &FormatError{n, "no kind of record that this version knows: another version of sshpace wrote it; measure again"}
	case len(set) != 1:
		return nil, &FormatError{n, fmt.Sprintf("%d kinds of record on one line, want one", len(set))}
	}
	return set[0], nil
}

// line returns a struct with a pointer to each kind of record that a File holds.
var line = sync.OnceValue(func() reflect.Type {
	var keys []reflect.StructField
	for field := range reflect.TypeFor[File]().Fields() {
		if r, is := reflect.Zero(reflect.PointerTo(held(field.Type))).Interface().(Record); is {
			keys = append(keys, reflect.StructField{Name: field.Name, Type: reflect.TypeOf(r), Tag: reflect.StructTag(`json:"` + r.kind() + `"`)})
		}
	}
	return reflect.StructOf(keys)
})

// held returns the type of the records in a field of a File.
func held(field reflect.Type) reflect.Type {
	if kind := field.Kind(); kind == reflect.Slice || kind == reflect.Map {
		return field.Elem()
	}
	return field
}

// File is a whole record file in memory. Each field holds the records of one kind, in file order;
// the order of the fields is one in which Load reads them.
type File struct {
	Campaign     Campaign
	Environment  Environment
	Trials       map[int]Trial // by ID
	Samples      []Sample
	Slices       []Slices
	Subjects     []Subject
	Readings     []Reading
	Hosts        []Host
	Limits       []Limit
	Thermals     []Thermal
	Measurements []Measurement
	Findings     []Finding
	End          End  // the last one; empty if there is none
	Truncated    bool // the last line was cut off
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
		if why := f.rejects(record, sampled); why != "" {
			return nil, &FormatError{line, why}
		}
		f.add(record)
	}
	return f, nil
}

// rejects returns the reason why a record cannot be the next one; "" is none. sampled holds the
// trials that have a sample.
func (f *File) rejects(r Record, sampled map[int]bool) string {
	switch r := r.(type) {
	case *Sample:
		if _, known := f.Trials[r.Trial]; !known {
			return fmt.Sprintf("a sample of trial %d, which is not in the file", r.Trial)
		}
		if sampled[r.Trial] {
			return fmt.Sprintf("a second sample of trial %d: the same records twice would look like more evidence", r.Trial)
		}
		sampled[r.Trial] = true
	case *Subject:
		if (r.Method == nil) == (r.LoginKind == nil) {
			return fmt.Sprintf("subject %d is neither a transfer method nor a kind of login", r.ID)
		}
	case *Reading:
		if !slices.ContainsFunc(f.Subjects, func(s Subject) bool { return s.ID == r.Subject }) {
			return fmt.Sprintf("a reading of subject %d, which is not in the file", r.Subject)
		}
	}
	return ""
}

// Records yields the content of the file in an order in which Load reads it.
func (f *File) Records() iter.Seq[Record] {
	return func(yield func(Record) bool) {
		next := true
		each := func(x any) {
			if r, is := x.(Record); is {
				next = next && yield(r)
			}
		}
		for _, field := range reflect.ValueOf(f).Elem().Fields() {
			switch field.Kind() {
			case reflect.Slice:
				for i := range field.Len() {
					each(field.Index(i).Addr().Interface())
				}
			case reflect.Map:
				for _, id := range slices.Sorted(maps.Keys(f.Trials)) {
					trial := f.Trials[id]
					each(&trial)
				}
			default:
				if !field.IsZero() {
					each(field.Addr().Interface())
				}
			}
		}
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
	x := reflect.ValueOf(r).Elem()
	for _, field := range reflect.ValueOf(f).Elem().Fields() {
		switch {
		case held(field.Type()) != x.Type():
		case field.Kind() == reflect.Slice:
			field.Set(reflect.Append(field, x))
		case field.Kind() == reflect.Map:
			field.SetMapIndex(x.FieldByName("ID"), x)
		default:
			field.Set(x)
		}
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
