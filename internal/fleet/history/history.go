// Package history keeps a record of every fleet run: which hosts, how each ended, when. Later runs
// can use the hosts of an earlier one (@last:failed). Each record is a file: the records of `run
// --json`, with output only on request, written as things happen. After a crash or kill -9 all but
// the last line can be read; hosts with a start and no result are known to be unfinished, hosts
// with neither were never touched.
//
// The command line is stored unless the caller leaves it out, and so are the flags that it does not
// name as Unkept. They may hold secrets, which is why records are 0600 in a 0700 directory.
package history

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/journal"
	"sshpace/internal/sys/safedir"
)

// Dir returns the directory of the history within our directory for lasting data; "" if there is
// none.
func Dir(getenv func(string) string) string {
	state := safedir.State(getenv)
	if state == "" {
		return ""
	}
	return filepath.Join(state, "runs")
}

// Store is the directory of the records. It is made when the first run is recorded.
type Store struct {
	dir journal.Directory
	own map[string]string // settings of hosts in the runs that were read
}

// New returns the store in a directory, which need not exist.
func New(dir string) *Store { return &Store{journal.Directory(dir), map[string]string{}} }

// Recorder writes the record of one run: its beginning, and the progress and end of each host. Its
// methods never fail: a failing record must not end the run. Close returns the error.
type Recorder struct {
	fleet.Nothing
	ID     string // of the run, sorts by time; "" where none is kept
	file   *os.File
	sink   *output.JSON
	err    error
	room   int64 // bytes of output that may still be recorded
	unkept int64 // of output for which there was none

	pruning  sync.WaitGroup
	unpruned error // why older runs could not be removed
}

var _ fleet.Sink = (*Recorder)(nil)

// start begins the record of a run that begins now. Close must be called on it.
func (s *Store) start(now time.Time, how output.How) (*Recorder, error) {
	file, err := s.dir.Create(now, "")
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	r := &Recorder{ID: idOf(file.Name()), file: file, sink: output.NewRecord(file, how), room: how.Kept}
	r.pruning.Go(func() { r.unpruned = s.dir.Prune(keepRuns) }) // while hosts are waited for
	return r, nil
}

// idOf returns the ID of a run by the name of its record.
func idOf(name string) string { return strings.TrimSuffix(filepath.Base(name), journal.Ending) }

// Begin records the plan of the run.
func (r *Recorder) Begin(s fleet.Start) error { return r.note(r.sink.Begin(s)) }

// Started records that a host is being connected to.
func (r *Recorder) Started(index int) error { return r.note(r.sink.Started(index)) }

// Output records output, as long as there is room for it.
func (r *Recorder) Output(e fleet.Event) error {
	kept := min(int64(len(e.Data)), r.room)
	r.unkept += int64(len(e.Data)) - kept
	if e.Data = e.Data[:kept]; kept == 0 {
		return nil
	}
	r.room -= int64(len(e.Data))
	return r.note(r.sink.Output(e))
}

// Done records the end of a host.
func (r *Recorder) Done(res fleet.Result, so fleet.Summary) error {
	return r.note(r.sink.Done(res, so))
}

// End records the end of the run.
func (r *Recorder) End(so fleet.Summary) error {
	so.Unkept = r.unkept
	return r.note(r.sink.End(so))
}

// Err returns the first error so far.
func (r *Recorder) Err() error { return r.err }

// note keeps the first error.
func (r *Recorder) note(err error) error {
	if r.err == nil && err != nil {
		r.err = fmt.Errorf("history: %w", err)
	}
	return nil
}

// Beside joins the sink and the record, which comes last, so that it knows which output was lost.
func (r *Recorder) Beside(sink fleet.Sink) fleet.Sink {
	if r.ID == "" {
		return sink
	}
	return output.Tee{sink, r}
}

// Close returns the first error of the record; earlier lines stay.
func (r *Recorder) Close() error {
	if r.ID == "" {
		return nil
	}
	r.pruning.Wait()
	return errors.Join(r.err, r.unpruned, r.file.Close())
}

// ids lists the recorded runs, the newest first.
func (s *Store) ids() ([]string, error) {
	ids, err := s.dir.Names()
	for i, name := range ids {
		ids[i] = idOf(name)
	}
	if err != nil {
		err = fmt.Errorf("history: %w", err)
	}
	return ids, err
}
