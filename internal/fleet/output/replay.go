package output

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/journal"
)

// Replay reads a record that NewRecord wrote and reports the run to sink as it went, with the
// output that was kept, each host's end at most once. It returns how the run is done again. The
// record of a run that goes on, or that was killed, has no End; a cut last line is left out. Any
// other damage is an error.
func Replay(r io.Reader, sink fleet.Sink) (How, error) {
	return (&replay{sink: sink, ended: map[int]bool{}}).all(r)
}

// Outline is Replay without output, which it does not even parse.
func Outline(r io.Reader, sink fleet.Sink) (How, error) {
	return (&replay{sink: sink, ended: map[int]bool{}, outline: true}).all(r)
}

// Head returns how a recorded run is done again, from the beginning of its record.
func Head(r io.Reader) (How, error) {
	run := runRecord{How: &How{}}
	for line, err := range journal.Lines(r) {
		if err = cmp.Or(err, json.Unmarshal(line, &run)); err != nil || run.How == nil {
			return How{}, err
		}
		return *run.How, nil
	}
	return How{}, errEmpty
}

// errEmpty is the record of a run that had not begun.
var errEmpty = errors.New("the record is empty")

func (p *replay) all(r io.Reader) (How, error) {
	n := 0
	for line, err := range journal.Lines(r) {
		n++
		if errors.Is(err, journal.ErrTruncated) {
			break
		}
		if err != nil {
			return How{}, err
		}
		if err := p.line(line, n == 1); err != nil {
			return How{}, fmt.Errorf("line %d: %w", n, err)
		}
	}
	if p.index == nil {
		return How{}, errEmpty
	}
	return p.how, nil
}

// Reader is Replay of lines that come one by one, about known hosts. It leaves out those about
// whole runs.
type Reader struct{ replay }

// NewReader reports what it reads to sink, with indices of hosts.
func NewReader(hosts []host.Host, sink fleet.Sink) *Reader {
	r := &Reader{replay{sink: sink, hosts: hosts, index: make(map[string]int, len(hosts)), ended: map[int]bool{}}}
	for i, h := range hosts {
		r.index[h.Exact()] = i
	}
	return r
}

// Line reads a line without its end. An error is about this line alone.
func (r *Reader) Line(data []byte) error {
	kind, err := kindOf(data)
	if kind == "summary" {
		return nil
	}
	return cmp.Or(err, r.about(kind, data))
}

type replay struct {
	sink    fleet.Sink
	outline bool // without output
	how     How
	hosts   []host.Host
	index   map[string]int // of the hosts, by the names in the record
	ended   map[int]bool
	so      fleet.Summary
	lines   PerHost[[2]bool] // of each stream, whether the line before ends before the next one begins
}

func (p *replay) line(data []byte, first bool) error {
	if first {
		return p.begin(data)
	}
	kind, err := kindOf(data)
	if kind == "output" && p.outline {
		return nil
	}
	return cmp.Or(err, p.about(kind, data))
}

// kindOf returns the type of a record. JSON writes it first, so that no line is parsed twice.
func kindOf(data []byte) (string, error) {
	if rest, first := bytes.CutPrefix(data, []byte(`{"type":"`)); first {
		if word, _, whole := bytes.Cut(rest, []byte(`",`)); whole {
			return string(word), nil
		}
	}
	var kind struct{ Type string }
	err := json.Unmarshal(data, &kind)
	return kind.Type, err
}

func (p *replay) about(kind string, data []byte) error {
	switch kind {
	case "start":
		return p.start(data)
	case "output":
		return p.output(data)
	case "result":
		return p.result(data)
	case "summary":
		return p.end(data)
	}
	return nil // a newer version may have written it
}

func (p *replay) begin(data []byte) error {
	var run runRecord
	if err := json.Unmarshal(data, &run); err != nil {
		return err
	}
	if run.Type != "run" || run.Schema != Schema || run.How == nil {
		return fmt.Errorf("%s %q is not a %s record of a run", run.Type, run.Schema, Schema)
	}
	names, err := hostset.Expand(run.Set, hostset.Options{})
	if err != nil {
		return err
	}
	settings := map[string]string{}
	for text, set := range run.Own {
		owners, err := hostset.Expand(set, hostset.Options{})
		if err != nil {
			return err
		}
		for _, name := range owners {
			settings[name] = text
		}
	}
	p.how, p.index = *run.How, map[string]int{}
	for i, name := range names {
		h, err := host.Parse(name)
		if err != nil {
			return err
		}
		h.Settings = settings[name]
		p.hosts, p.index[name] = append(p.hosts, h), i
	}
	start, err := time.Parse(time.RFC3339Nano, run.Start)
	if err != nil {
		return err
	}
	return p.sink.Begin(fleet.Start{ID: run.ID, Time: start, Command: run.Command, Hosts: p.hosts})
}

func (p *replay) start(data []byte) error {
	var start startRecord
	if err := json.Unmarshal(data, &start); err != nil {
		return err
	}
	i, err := p.of(start.Host)
	if err != nil {
		return err
	}
	return p.sink.Started(i)
}

// content returns the text as it came.
func (rec *outputRecord) content() ([]byte, error) {
	if rec.Text != nil {
		return []byte(*rec.Text), nil
	}
	return base64.StdEncoding.DecodeString(rec.Base64)
}

// output hands on a piece of output. One that may be a part of a line gets its end with the next
// piece, which shows whether the line went on.
func (p *replay) output(data []byte) error {
	var rec outputRecord
	if err := json.Unmarshal(data, &rec); err != nil {
		return err
	}
	i, err := p.of(rec.Host)
	if err != nil {
		return err
	}
	text, err := rec.content()
	if err != nil {
		return err
	}
	ends := &p.lines.Of(i)[rec.Stream]
	if *ends && !rec.Continues {
		text = append([]byte("\n"), text...)
	}
	*ends = rec.EOL == nil
	if *ends && len(text) < defaultMaxLine-utf8.UTFMax {
		text, *ends = append(text, '\n'), false
	}
	at, _ := time.Parse(time.RFC3339Nano, rec.Time) // absent: zero
	return p.send(i, rec.Stream, text, at)
}

func (p *replay) send(i int, stream fleet.Stream, data []byte, at time.Time) error {
	return p.sink.Output(fleet.Event{Index: i, Host: p.hosts[i].String(), Stream: stream, Data: data, Time: at})
}

func (p *replay) result(data []byte) error {
	var rec resultRecord
	if err := json.Unmarshal(data, &rec); err != nil {
		return err
	}
	i, err := p.of(rec.Host)
	if err != nil || p.ended[i] {
		return err
	}
	p.ended[i] = true
	r, err := rec.result()
	if err != nil {
		return err
	}
	for stream, ends := range p.lines.Take(i) {
		if !ends {
			continue
		}
		if err := p.send(i, fleet.Stream(stream), []byte("\n"), r.End()); err != nil {
			return err
		}
	}
	r.Index, r.Host = i, p.hosts[i]
	r.Host.Label = rec.Label
	p.so.Add(&r)
	return p.sink.Done(r, p.so)
}

func (p *replay) end(data []byte) error {
	var sum summaryRecord
	if err := json.Unmarshal(data, &sum); err != nil {
		return err
	}
	return p.sink.End(fleet.Summary{
		OK: sum.OK, Failed: sum.Failed, Unreachable: sum.Unreachable, NotStarted: sum.NotStarted,
		Incomplete: sum.Incomplete, Stopped: sum.Stopped, MaxExit: sum.MaxExit, Elapsed: time.Duration(sum.ElapsedNS), Unkept: sum.Unkept,
	})
}

func (p *replay) of(name string) (int, error) {
	i, known := p.index[name]
	if !known {
		return 0, fmt.Errorf("host %q is not among those of the run", name)
	}
	return i, nil
}
