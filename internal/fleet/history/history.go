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
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/journal"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
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

// idTime is the beginning of an ID, which tells apart the runs of one millisecond: one is the last.
const idTime = "20060102T150405.000000000Z"

// Store is the directory of the records. It is made when the first run is recorded.
type Store struct {
	dir string
}

// New returns the store in a directory, which need not exist.
func New(dir string) *Store { return &Store{dir: dir} }

// Recorder writes the record of one run: its beginning, and the progress and end of each host. Its
// methods never fail: a failing record must not end the run. Close returns the error.
type Recorder struct {
	fleet.Nothing
	ID   string // of the run, sorts by time; "" where none is kept
	file *os.File
	sink *output.JSON
	err  error
	room int64 // bytes of output that may still be recorded

	pruning  sync.WaitGroup
	unpruned error // why older runs could not be removed
}

var _ fleet.Sink = (*Recorder)(nil)

// start begins the record of a run that begins now. Close must be called on it.
func (s *Store) start(now time.Time, how output.How) (*Recorder, error) {
	directory, err := s.directory(safedir.Make)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer directory.Close()
	id := now.UTC().Format(idTime) + "-" + strings.ToLower(rand.Text()[:6])
	file, err := directory.OpenFile(id+journal.Ending, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	r := &Recorder{ID: id, file: file, sink: output.NewRecord(file, how), room: how.Kept}
	r.pruning.Go(func() { r.unpruned = s.prune(keepRuns) }) // while hosts are waited for
	return r, nil
}

// directory opens the directory, which must be out of other users' reach: its records are run
// again.
func (s *Store) directory(open func(string) (*safedir.Directory, error)) (*safedir.Directory, error) {
	if s.dir == "" {
		return nil, errors.New("neither XDG_STATE_HOME nor HOME is set")
	}
	return open(s.dir)
}

// Begin records the plan of the run.
func (r *Recorder) Begin(s fleet.Start) error { return r.note(r.sink.Begin(s)) }

// Started records that a host is being connected to.
func (r *Recorder) Started(index int) error { return r.note(r.sink.Started(index)) }

// Output records output, as long as there is room for it.
func (r *Recorder) Output(e fleet.Event) error {
	if e.Data = e.Data[:min(int64(len(e.Data)), r.room)]; len(e.Data) == 0 {
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
func (r *Recorder) End(so fleet.Summary) error { return r.note(r.sink.End(so)) }

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

// ids lists the recorded runs, the newest first. A missing directory has no runs.
func (s *Store) ids() ([]string, error) {
	directory, err := s.directory(safedir.Open)
	if errors.Is(err, fs.ErrNotExist) || s.dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer directory.Close()
	ids, err := directory.Names(journal.Ending)
	for i, name := range ids {
		ids[i] = strings.TrimSuffix(name, journal.Ending)
	}
	slices.Reverse(ids)
	return ids, err
}

// prune removes all but the newest runs, when there are a tenth more: it reads every one of them
// then, and every run calls this.
func (s *Store) prune(keep int) error {
	directory, err := s.directory(safedir.Open)
	if errors.Is(err, fs.ErrNotExist) || s.dir == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	defer directory.Close()
	if all, err := directory.Entries(journal.Ending); err != nil || len(all) <= keep+keep/10 {
		return err
	}
	ids, err := s.ids()
	if err != nil || len(ids) <= keep {
		return err
	}
	var errs []error
	for _, id := range ids[keep:] {
		errs = append(errs, directory.Remove(id+journal.Ending))
	}
	return errors.Join(errs...)
}
