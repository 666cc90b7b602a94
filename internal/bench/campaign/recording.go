//go:build linux

package campaign

import (
	"cmp"
	"fmt"
	"path/filepath"
	"time"

	"sshpace/internal/base/shell"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
	"sshpace/internal/record/store"
	"sshpace/internal/show/format"
)

// recording is a measurement whose records go into a file and stay in memory.
type recording struct {
	Output
	file   *store.File
	memory *record.File
	sink   record.Sink
}

// keep begins a recording with what is measured, on what, and what was found there; or goes on with one, which has a
// beginning.
func keep(o Output, file *store.File, c record.Campaign, e *record.Environment, findings ...record.Finding) (*recording, error) {
	r := &recording{Output: o, file: file, memory: file.Old}
	if r.memory == nil {
		r.memory = &record.File{Trials: map[int]record.Trial{}}
	}
	r.sink = record.Tee(record.Write(file), r.memory.Sink())
	if file.Old != nil {
		return r, nil
	}
	c.Format, c.Started = record.FormatVersion, time.Now().UTC()
	err := cmp.Or(r.sink(record.Record{Campaign: &c}), r.sink(record.Record{Environment: e}))
	for _, f := range findings {
		err = cmp.Or(err, r.sink(record.Record{Finding: &f}))
	}
	return r, err
}

// end says why nothing follows.
func (r *recording) end(why plan.Ending) error { return cmp.Or(r.sink(why.Record()), r.file.Sync()) }

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
