// Package legacy reads the logs of older benchmarks and turns them into records of ours: the
// ssh-performance.sh logs of 2014 and 2016, the cipher loop of 2015, the progress lines of scp, and
// the text of openssl speed, nbench and Bonnie++. It guesses nothing: facts that a log lacks stay
// unknown, a coarse clock becomes an interval, and an unknown line is returned with its number. It
// opens no files.
package legacy

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/speed"
	"sshpace/internal/record"
	"sshpace/internal/sys/file"
)

// Options of Read. Only Name is needed.
type Options struct {
	Name     string           // name for a machine that the log does not name
	Format   string           // one of Formats; "" to find out
	Size     unit.Bytes       // bytes of each copy, where the log does not say; 0 unknown
	Runs     int              // copies that an average of ssh-performance.sh is made of; 0 unknown
	Modified time.Time        // when the log was written
	Tool     string           // our own version, for the campaign
	Upload   record.Direction // direction of copies; "" is upload
}

// Check refuses an unknown format or direction.
func (o Options) Check() error {
	switch {
	case o.Format != "" && !slices.Contains(Formats(), o.Format):
		return fault.Usage("formats: "+strings.Join(Formats(), ", "), "--from %q", o.Format)
	case o.Upload != record.Upload && o.Upload != record.Download:
		return fault.Usage("use upload or download", "--direction %q", o.Upload)
	}
	return nil
}

// Result is the content of a log.
type Result struct {
	Machines []Machine
	Lines    int    // that are not empty
	Unread   []Line // lines that no format knows
}

// Line is an unknown line of the log.
type Line struct {
	Number int // from 1
	Text   string
}

// Machine is one machine's part of a log, as records of one file.
type Machine struct {
	Label   string
	Formats []string
	Records []record.Record
	Notes   []string // omitted or doubtful parts; also among the records
}

// Count returns how many trials and measurements the machine has.
func (m Machine) Count() (trials, measurements int) {
	for _, r := range m.Records {
		switch r.(type) {
		case *record.Sample:
			trials++
		case *record.Measurement:
			measurements++
		}
	}
	return trials, measurements
}

// UnusableError says why a log is unusable, and suggests a remedy.
type UnusableError struct {
	Why, Hint string
	Lines     int // that are not empty
	Unread    []Line
}

func (e *UnusableError) Error() string { return e.Why }

// foreign returns the error of a file that is not a log of a known format.
func foreign(holds string, lines int, unread []Line) error {
	why := "the file is empty"
	if lines > 0 || holds != "nothing" {
		why = fmt.Sprintf("none of its %d lines is a result in a known format; it starts with %s", lines, holds)
	}
	return &UnusableError{why, "formats: " + strings.Join(Formats(), ", "), lines, unread}
}

// ErrResult says that a file is not a log but a result of ours.
var ErrResult = errors.New("it is a result of sshpace already")

// maxFile is how much of a log is read: a guard against other files.
const maxFile = 64 << 20

// maxText is the longest line of any format.
const maxText = 4096

// reader is the reader of one format. It takes the lines that it knows.
type reader interface{ Take(line string) bool }

// formats are tried in this order; the first that knows a line continues.
var formats = []struct {
	name string
	open func(d *document) reader
}{
	{"ssh-performance", func(d *document) reader { return &performance{document: d} }},
	{"cipher-loop", func(d *document) reader { return &loop{document: d} }},
	{"openssl-speed", func(d *document) reader { return &speed.Reader{Open: d.built} }},
	{"nbench", func(d *document) reader { return &nbench{document: d} }},
	{"bonnie", func(d *document) reader { return &bonnie{document: d} }},
	{"scp", func(d *document) reader { return &scp{document: d} }},
}

// Formats returns the names of the formats that Read knows.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}

// Read reads a log. Its errors are *UnusableError, ErrResult, and those of r.
func Read(r io.Reader, o Options) (*Result, error) {
	content, err := file.ReadAll(r, o.Name, maxFile)
	if file.IsTooLarge(err) {
		return nil, foreign(fmt.Sprintf("more than %d MiB", maxFile>>20), 0, nil)
	}
	if err != nil {
		return nil, err
	}
	if err := file.Wide(content, "it"); err != nil {
		return nil, &UnusableError{Why: err.Error(), Hint: fault.HintOf(err)}
	}
	text := strings.TrimPrefix(string(content), record.ByteOrderMark)
	if isResult(text) {
		return nil, ErrResult
	}
	d := &document{options: o}
	var readers []reader
	for _, f := range formats {
		if o.Format == "" || o.Format == f.name {
			readers = append(readers, f.open(d))
		}
	}
	result := d.read(text, readers)
	unusable := foreign(seen(text), result.Lines, result.Unread)
	if len(result.Unread) == result.Lines {
		return nil, unusable
	}
	for _, m := range d.machines {
		machine, err := m.records(o)
		if err != nil {
			return nil, err
		}
		if trials, measurements := machine.Count(); trials+measurements > 0 {
			result.Machines = append(result.Machines, machine)
		}
	}
	if notes := d.notes(); len(result.Machines) == 0 && len(notes) > 0 {
		return nil, &UnusableError{"the log holds nothing that can be used: " + strings.Join(notes, "; "), "use the log itself, not a page that shows it", result.Lines, result.Unread}
	}
	if len(result.Machines) == 0 { // only commands, no results
		return nil, unusable
	}
	result.nameApart()
	return result, nil
}

// isResult reports whether a text begins like our own record files.
func isResult(text string) bool {
	for _, err := range record.Read(strings.NewReader(text)) {
		return err == nil
	}
	return false
}

// read offers each line to the reader that took the last one, then to all.
func (d *document) read(text string, readers []reader) *Result {
	result := &Result{}
	current := readers[0]
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		result.Lines++
		if len(line) <= maxText && current.Take(line) {
			continue
		}
		i := slices.IndexFunc(readers, func(r reader) bool { return len(line) <= maxText && r.Take(line) })
		if i < 0 {
			result.Unread = append(result.Unread, Line{number, line[:min(len(line), maxText)]})
			continue
		}
		current = readers[i]
	}
	return result
}

// seen describes a foreign file by its first bytes.
func seen(text string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(text, " \t\r\n"), "\n")
	if first == "" {
		return "nothing"
	}
	return fmt.Sprintf("%q", first[:min(len(first), 60)])
}

// nameApart numbers machines of the same name.
func (r *Result) nameApart() {
	used := map[string]int{}
	for i := range r.Machines {
		m := &r.Machines[i]
		used[m.Label]++
		if n := used[m.Label]; n > 1 {
			m.Label = fmt.Sprintf("%s-%d", m.Label, n)
			for _, r := range m.Records {
				switch r := r.(type) {
				case *record.Campaign:
					r.Target = m.Label
				case *record.Trial:
					r.Target = m.Label
				}
			}
		}
	}
}
