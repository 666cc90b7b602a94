//go:build linux

package campaign

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/shell"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
	"sshpace/internal/sys/terminal"
)

// Output is the place for progress and records of a measurement.
type Output struct {
	Stdout, Stderr io.Writer
	Screen         *terminal.Screen // on Stderr
	Quiet          bool             // no progress
	JSON           bool             // the report
	GoOn           string           // command line that resumes a result, but for its name
	Options        []string         // flags that lead ssh to the host
	Store          store.Store
	Out            string      // file of a new result; "" for one of our own
	File           *store.File // a result to resume; nil: a new one
}

// recording is a measurement whose records go into a file and stay in memory.
type recording struct {
	Output
	file        *store.File
	memory      *record.File
	sink        record.Sink
	interrupted bool
}

// begin begins a recording with the description of the measurement, in a new file named after name;
// or resumes one, which has a beginning. The caller closes it.
func (o Output) begin(name string, c record.Campaign, e *record.Environment, findings ...record.Finding) (_ *recording, err error) {
	r := &recording{Output: o, file: o.File, memory: &record.File{Trials: map[int]record.Trial{}}}
	if o.File != nil {
		r.memory = o.File.Old
	} else if r.file, err = o.Store.Create(o.Out, name); err != nil {
		return nil, err
	}
	write := record.Write(r.file)
	r.sink = record.Tee(func(x record.Record) error { return r.unwritten(write(x)) }, r.memory.Sink())
	if o.File != nil {
		return r, nil
	}
	c.Format, c.Started = record.FormatVersion, time.Now().UTC()
	err = cmp.Or(r.sink(&c), r.sink(e))
	for _, f := range findings {
		err = cmp.Or(err, r.sink(&f))
	}
	if err != nil {
		r.close()
	}
	return r, err
}

// goOn returns the command line that resumes it.
func (r *recording) goOn() string { return r.GoOn + r.Store.Word(r.file.Name()) }

// unwritten adds a remedy to a record that could not be written.
func (r *recording) unwritten(err error) error {
	if fault.NoSpace(err) || errors.Is(err, os.ErrClosed) {
		return fault.WithHint(err, "make room, then continue with: "+r.goOn())
	}
	return err
}

// carry lets measure make records until drain ends, and returns why it stopped; more names the flag
// for a longer run.
func (r *recording) carry(drain context.Context, more string, measure func() error) error {
	before := made(r.memory)
	err := measure()
	_ = r.Screen.Draw()
	why := plan.EndComplete
	if r.interrupted = drain.Err() != nil; r.interrupted {
		why, err = plan.EndInterrupted, nil
	}
	if err == nil && !r.interrupted && made(r.memory) == before {
		fmt.Fprintf(r.Stderr, "nothing left to do; give %s to continue\n", more)
	}
	return cmp.Or(r.end(why), err)
}

// made returns the number of measurements in a record file.
func made(f *record.File) int {
	return len(f.Trials) + len(f.Subjects) + len(f.Readings)
}

// end records why the measurement ended, and writes the file to the disk.
func (r *recording) end(why plan.Ending) error {
	return cmp.Or(r.sink(why.Record()), r.unwritten(r.file.Sync()))
}

// broken is an error that leaves a measurement without a report: it describes the results so far,
// and how to resume.
func (r *recording) broken(err error) error {
	fmt.Fprintf(r.Stderr, "the records so far are in %s\n", r.file.Name())
	return fault.WithHint(err, cmp.Or(fault.HintOf(err), "continue with: "+r.goOn()))
}

// close closes the file, and says how to resume an interrupted run.
func (r *recording) close() {
	if r.interrupted {
		fmt.Fprintf(r.Stderr, "continue with: %s\n", r.goOn())
	}
	r.file.Close()
}

// show prints the report, and where the records are.
func (r *recording) show(report format.Report) error {
	if err := format.Print(r.Stdout, report, r.JSON); err != nil {
		return err
	}
	again := " " + shell.Word(r.file.Name())
	if filepath.IsAbs(r.file.Name()) { // as the last one is, it need not be named
		again = ""
	}
	format.Saved(r.Stderr, r.Store.Shown(r.file.Name()))
	fmt.Fprintf(r.Stderr, "show it again: sshpace report%s\n", again)
	return nil
}
