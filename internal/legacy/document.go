package legacy

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/speed"
	"sshpace/internal/record"
)

// document is a log that is being read: the machines whose results it holds.
type document struct {
	options  Options
	machines []*machine
}

// machine collects the results of one machine.
type machine struct {
	label        string
	formats      []string
	build        string // of its openssl
	environment  record.Environment
	measurements []record.Measurement
	runs         []run
	remarks      []remark
}

type run struct {
	suite     alg.Suite
	direction record.Direction // "" for the default
	bytes     unit.Bytes       // 0: Options.Size
	dd        bool             // dd counts the bytes, if the copy comes to its end
	elapsed   bounds
	client    time.Duration // CPU time of the client; 0 unknown
	outcome   record.Outcome
	detail    string
}

// bounds is a time from a clock with a resolution.
type bounds struct{ lo, mid, hi time.Duration }

// around returns a time that is known to within half of step on either side.
func around(seconds, step float64) bounds {
	return between(seconds-step/2, seconds+step/2)
}

func between(lo, hi float64) bounds {
	lo = math.Max(0, lo)
	scale := func(s float64) time.Duration { return time.Duration(s * 1e9) }
	return bounds{scale(lo), scale((lo + hi) / 2), scale(hi)}
}

// remark is a warning about the result, and how often it occurred.
type remark struct {
	text  string // with %d where it is counted
	count int
}

// begin returns the machine of a new section of a format: the present one, unless it has a section
// of that format already.
func (d *document) begin(format string) *machine {
	m := d.machine()
	if slices.Contains(m.formats, format) {
		m = &machine{}
		d.machines = append(d.machines, m)
	}
	m.formats = append(m.formats, format)
	return m
}

// within returns the present machine, for formats without sections.
func (d *document) within(format string) *machine {
	m := d.machine()
	if !slices.Contains(m.formats, format) {
		m.formats = append(m.formats, format)
	}
	return m
}

// built returns the machine of a section of openssl speed: the present one, if its other sections
// are of that build.
func (d *document) built(build string) speed.Machine {
	const format = "openssl-speed"
	if m := d.machine(); m.build == build && slices.Contains(m.formats, format) {
		return m
	}
	m := d.begin(format)
	m.build = build
	m.environment.Crypto, _, _ = strings.Cut(build, "\n")
	return m
}

// machine returns the machine whose section is being read.
func (d *document) machine() *machine {
	if len(d.machines) == 0 {
		d.machines = []*machine{{}}
	}
	return d.machines[len(d.machines)-1]
}

// Measure adds a figure, if it is finite.
func (m *machine) Measure(source, name string, u record.Unit, value float64) {
	if value > 0 && !math.IsInf(value, 0) {
		m.measurements = append(m.measurements, record.Measurement{Source: source, Name: name, Unit: u, Value: value, N: 1})
	}
}

// Remark counts a remark.
func (m *machine) Remark(text string) {
	for i := range m.remarks {
		if m.remarks[i].text == text {
			m.remarks[i].count++
			return
		}
	}
	m.remarks = append(m.remarks, remark{text, 1})
}

// notes are the remarks of a machine in words.
func (m *machine) notes() []string {
	var out []string
	for _, r := range m.remarks {
		text := r.text
		if r.count > 1 {
			text = fmt.Sprintf("%s (%d times)", text, r.count)
		}
		out = append(out, text)
	}
	return out
}

func (d *document) notes() []string {
	var out []string
	for _, m := range d.machines {
		out = append(out, m.notes()...)
	}
	return out
}

// records makes the records of one machine.
func (m *machine) records(o Options) (Machine, error) {
	m.settle()
	out := Machine{Label: m.label, Formats: m.formats, Notes: m.notes()}
	if out.Label == "" {
		out.Label = o.Name
	}
	c := record.Campaign{
		Format: record.FormatVersion, Tool: o.Tool, Started: o.Modified, Target: out.Label,
		Imported: strings.Join(m.formats, " "), Directions: []record.Direction{},
	}
	if len(m.runs) > 0 {
		c.Engine = record.EngineOpenSSH // all formats that hold runs are of ssh and scp
	}
	var trials []record.Record
	sizes := map[unit.Bytes]bool{}
	for i, r := range m.runs {
		if r.bytes == 0 {
			r.bytes = o.Size
		}
		if r.bytes == 0 && r.outcome == record.OK {
			return out, &UnusableError{Why: "a log of " + m.formats[0] + " does not say how many bytes each copy moved", Hint: "say it with --size, such as --size 4G"}
		}
		r.direction = direction(r.direction, o.Upload)
		trial, sample := r.records(i+1, out.Label, o.Modified)
		trials = append(trials, &trial, &sample)
		c.Offer = add(c.Offer, r.suite)
		if !slices.Contains(c.Directions, r.direction) {
			c.Directions = append(c.Directions, r.direction)
		}
		if r.outcome == record.OK {
			sizes[r.bytes] = true
		}
	}
	c.Combos = alg.Fold(c.Offer).Combinations()
	if len(sizes) == 1 {
		c.SizeBytes = slices.Collect(maps.Keys(sizes))[0]
	}
	out.Records = []record.Record{&c, &m.environment, dated(o.Modified)}
	for _, note := range out.Notes {
		out.Records = append(out.Records, &record.Finding{What: note, Why: "said by the log that was imported"})
	}
	for i := range m.measurements {
		out.Records = append(out.Records, &m.measurements[i])
	}
	out.Records = append(out.Records, trials...)
	return out, nil
}

// dated describes the date of an imported result.
func dated(modified time.Time) *record.Finding {
	if modified.IsZero() {
		return &record.Finding{What: "the date of the measurement is unknown", Why: "no format holds one"}
	}
	return &record.Finding{What: "the date is that of the log file's last change, not that of the measurement", Why: "no format holds one"}
}

func direction(own, given record.Direction) record.Direction {
	switch {
	case own != "":
		return own
	case given != "":
		return given
	}
	return record.Upload
}

// add puts the names of a suite into the offer, in the order of appearance.
func add(o alg.Offer, s alg.Suite) alg.Offer {
	put := func(list []string, name string) []string {
		if name == "" || slices.Contains(list, name) {
			return list
		}
		return append(list, name)
	}
	o.Ciphers, o.MACs, o.Kex = put(o.Ciphers, s.Cipher), put(o.MACs, s.MAC), put(o.Kex, s.Kex)
	return o
}

// records makes a trial and its sample.
func (r run) records(id int, target string, at time.Time) (record.Trial, record.Sample) {
	t := record.Trial{
		ID: id, Target: target, Workload: record.Copy, Direction: r.direction,
		Want: alg.NewSuite(r.suite.Cipher, r.suite.MAC, r.suite.Kex),
	}
	if t.Want != r.suite {
		t.Offered = r.suite // an AEAD cipher under the name of a MAC that it ignores
	}
	s := record.Sample{Trial: id, Got: t.Want, Start: at, Outcome: r.outcome, Detail: r.detail}
	if r.outcome != record.OK {
		return t, s
	}
	s.Bytes, s.ElapsedNS, s.ElapsedLoNS, s.ElapsedHiNS = r.bytes, r.elapsed.mid, r.elapsed.lo, r.elapsed.hi
	if t.SizeBytes = r.bytes; r.client > 0 {
		s.ClientCPUNS = &r.client
	}
	return t, s
}

// validName reports whether a word can be an algorithm's name (RFC 4251 §6).
func validName(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	for _, r := range name {
		if r <= ' ' || r >= 0x7f || r == ',' || r == '$' || r == '"' || r == '\'' {
			return false
		}
	}
	return true
}
