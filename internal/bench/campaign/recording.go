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

// keep begins a recording with what is measured, and on what.
func keep(o Output, file *store.File, c record.Campaign, e *record.Environment) (*recording, error) {
	r := &recording{Output: o, file: file, memory: &record.File{Trials: map[int]record.Trial{}}}
	if file.Old != nil { // it has a beginning
		r.memory = file.Old
		r.sink = record.Tee(record.Write(file), r.memory.Sink())
		return r, nil
	}
	r.sink = record.Tee(record.Write(file), r.memory.Sink())
	c.Format, c.Started = record.FormatVersion, time.Now().UTC()
	return r, cmp.Or(r.sink(record.Record{Campaign: &c}), r.sink(record.Record{Environment: e}))
}

// end says why nothing follows.
func (r *recording) end(why plan.Ending) error { return cmp.Or(r.sink(why.Record()), r.file.Sync()) }

// show prints what was found, and where the records are.
func (r *recording) show(report format.Report) error {
	if err := format.Print(r.Stdout, report, r.JSON); err != nil {
		return err
	}
	name, again := r.Store.Shown(r.file.Name()), " "+shell.Word(r.file.Name())
	if filepath.IsAbs(r.file.Name()) { // as the last one is, it need not be named
		again = ""
	}
	fmt.Fprintf(r.Stderr, "\nsaved: %s\nshow it again: sshpace report%s\n", name, again)
	return nil
}
