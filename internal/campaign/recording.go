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

// Output is where a measurement shows what it does, and keeps its records.
type Output struct {
	Stdout, Stderr io.Writer
	Screen         *terminal.Screen // on Stderr
	Quiet          bool             // no progress
	JSON           bool             // the report
	GoOn           string           // command line that resumes a result, but for its name
	Options        []string         // flags that lead ssh to the host
	Store          store.Store
	Out            string      // file of a new result; "" for one of our own
	File           *store.File // a result that is gone on with; nil: a new one
}

// recording is a measurement whose records go into a file and stay in memory.
type recording struct {
	Output
	file        *store.File
	memory      *record.File
	sink        record.Sink
	interrupted bool
}

// begin begins a recording with what is measured, on what, and what was found there, in a new file named
// after name; or goes on with one, which has a beginning. The caller closes it.
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
	err = cmp.Or(r.sink(record.Record{Campaign: &c}), r.sink(record.Record{Environment: e}))
	for _, f := range findings {
		err = cmp.Or(err, r.sink(record.Record{Finding: &f}))
	}
	if err != nil {
		r.close()
	}
	return r, err
}

// goOn is the command line that goes on with it.
func (r *recording) goOn() string { return r.GoOn + r.Store.Word(r.file.Name()) }

// unwritten says what to do about a record that could not be written.
func (r *recording) unwritten(err error) error {
	if fault.NoSpace(err) || errors.Is(err, os.ErrClosed) {
		return fault.WithHint(err, "make room, then continue with: "+r.goOn())
	}
	return err
}

// carry has measure make records until drain ends, and says why nothing follows; more is what there
// is to be given for more to do.
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

// made is how much was measured.
func made(f *record.File) int {
	return len(f.Trials) + len(f.Methods) + len(f.Runs) + len(f.LoginRuns)
}

// end says why nothing follows.
func (r *recording) end(why plan.Ending) error {
	return cmp.Or(r.sink(why.Record()), r.unwritten(r.file.Sync()))
}

// broken is an error that leaves a measurement without a report: it says what there is, and how to go on.
func (r *recording) broken(err error) error {
	fmt.Fprintf(r.Stderr, "the records so far are in %s\n", r.file.Name())
	return fault.WithHint(err, cmp.Or(fault.HintOf(err), "continue with: "+r.goOn()))
}

// close closes the file, and says how to go on with what was interrupted.
func (r *recording) close() {
	if r.interrupted {
		fmt.Fprintf(r.Stderr, "continue with: %s\n", r.goOn())
	}
	r.file.Close()
}

// show prints what was found, and where the records are.
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
