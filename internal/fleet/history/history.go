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
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
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
// methods never fail: a failing record must not end the run, unless that is detached. Close returns
// the error.
type Recorder struct {
	fleet.Nothing
	ID      string // of the run, sorts by time; "" where none is kept
	file    *os.File
	lines   patient // into file
	sink    *output.JSON
	room    int64 // bytes of output that may still be recorded
	largest int64 // size of a record to which output is still added: short lines take many times their room
	unkept  int64 // bytes of output that are not recorded

	detached bool // nobody knows of the run but by the record
	begun    bool

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
	r := newRecorder(file, file, how)
	r.detached = how.Detached != nil
	if r.detached && !s.live(r.ID) {
		return nil, errors.Join(&fault.Error{What: "history: the file system of " + string(s.dir) + " has no locks, which show that a run goes on", Hint: "set XDG_STATE_HOME to a directory on another one"}, r.Drop())
	}
	var most int64
	if r.room > 0 {
		most = keepBytes
	}
	r.pruning.Go(func() { r.unpruned = s.dir.Prune(keepRuns, most) }) // while hosts are waited for
	return r, nil
}

// Rewrite writes the record of a run anew, but for its beginning: of one whose process was lost,
// while launchers continue.
func (s *Store) Rewrite(rec *Record) (*Recorder, error) {
	file, err := s.dir.Resume(rec.ID + journal.Ending)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	head, err := bufio.NewReader(file).ReadBytes('\n')
	if err = cmp.Or(err, file.Truncate(int64(len(head)))); err != nil {
		return nil, errors.Join(fmt.Errorf("history: %w", err), file.Close())
	}
	return newRecorder(file, io.Discard, rec.How), nil // until Begin
}

// newRecorder records into a file by w.
func newRecorder(file *os.File, w io.Writer, how output.How) *Recorder {
	r := &Recorder{ID: idOf(file.Name()), file: file, lines: patient{w: w}, room: how.Kept, largest: 4*how.Kept + 1<<20}
	r.sink = output.NewRecord(&r.lines, how)
	return r
}

// live reports whether the writer of a record lives.
func (s *Store) live(id string) bool {
	f, err := s.open(id)
	if err != nil {
		return false
	}
	defer f.Close()
	return journal.Written(f)
}

// idOf returns the ID of a run by the name of its record.
func idOf(name string) string { return strings.TrimSuffix(filepath.Base(name), journal.Ending) }

// Begin records the plan of the run.
func (r *Recorder) Begin(s fleet.Start) error {
	r.sink.Begin(s)
	if r.lines.w == io.Discard {
		r.lines.w = r.file
	}
	if r.begun = r.Err() == nil; !r.begun && r.detached {
		return r.Err()
	}
	return nil
}

// Started records that a host is being connected to.
func (r *Recorder) Started(index int) error {
	r.sink.Started(index)
	if err := r.Err(); err != nil && r.detached {
		return &fleet.Declined{Why: "the record cannot be written: " + fault.Words(err)}
	}
	return nil
}

// Output records output, as long as there is room for it.
func (r *Recorder) Output(e fleet.Event) error {
	if r.Err() != nil || r.lines.size > r.largest {
		r.room = 0
	}
	kept := min(int64(len(e.Data)), r.room)
	r.unkept += int64(len(e.Data)) - kept
	if e.Data = e.Data[:kept]; kept == 0 {
		return nil
	}
	r.room -= int64(len(e.Data))
	r.sink.Output(e)
	return nil
}

// Done records the end of a host.
func (r *Recorder) Done(res fleet.Result, so fleet.Summary) error {
	r.sink.Done(res, so)
	return nil
}

// End records the end of the run.
func (r *Recorder) End(so fleet.Summary) error {
	so.Unkept = r.unkept
	r.sink.End(so)
	return nil
}

// Err returns why the record cannot be written now.
func (r *Recorder) Err() error {
	if len(r.lines.rest) == 0 {
		return nil
	}
	return fmt.Errorf("history: %w", r.lines.err)
}

// patient writes to a file, and keeps what there is no room for until there is.
type patient struct {
	w    io.Writer
	size int64
	rest []byte
	err  error // why there is a rest
}

func (p *patient) Write(data []byte) (int, error) {
	all := data
	if len(p.rest) > 0 {
		all = append(p.rest, data...)
	}
	n, err := p.w.Write(all)
	p.size += int64(n)
	if p.err = err; len(p.rest) == 0 {
		p.rest = bytes.Clone(all[n:])
	} else {
		p.rest = all[n:]
	}
	return len(data), nil
}

// Beside joins the sink and the record, which comes last, so that it knows which output was lost.
func (r *Recorder) Beside(sink fleet.Sink) fleet.Sink {
	if r.ID == "" {
		return sink
	}
	return output.Tee{sink, r}
}

// Drop removes the record of a run that could not begin.
func (r *Recorder) Drop() error {
	if r.ID == "" {
		return nil
	}
	r.pruning.Wait()
	return errors.Join(r.file.Close(), os.Remove(r.file.Name()))
}

// Close returns why the record is not complete. That of a detached run waits for room, until ctx
// ends.
func (r *Recorder) Close(ctx context.Context) error {
	if r.ID == "" {
		return nil
	}
	for r.detached && r.begun && r.Err() != nil && sched.For(ctx, time.Second) {
		r.lines.Write(nil)
	}
	if r.detached && !r.begun { // Begin has returned why
		return r.Drop()
	}
	r.pruning.Wait()
	return errors.Join(r.Err(), r.unpruned, r.file.Close())
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
