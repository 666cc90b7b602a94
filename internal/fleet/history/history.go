// Package history keeps a record of every fleet run: which hosts, how each
// ended, when. Later runs can use the hosts of an earlier one (@last:failed).
// A record is a file of its own, one JSON object a line, written as things
// happen: after a crash or kill -9 all but the last line can be read, and hosts
// without a result are known to be unfinished. Remote output is never stored.
//
// The command line is stored unless the caller leaves it out, and so are the
// flags that it does not name as Unkept. They may hold secrets, which is why records are 0600 in a 0700 folder.
package history

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/hostset"
	"sshpace/internal/sys/safedir"
)

// Schema is the name and version of the records.
const Schema = "sshpace.history/1"

const suffix = ".jsonl"

// Dir is the folder of the history in our folder for what is to be kept; "" if
// there is none.
func Dir(getenv func(string) string) string {
	state := safedir.State(getenv)
	if state == "" {
		return ""
	}
	return filepath.Join(state, "runs")
}

// Store is the folder with the records. The folder is made when the first run is
// recorded.
type Store struct {
	dir string
}

// New returns the store in a folder, which need not exist.
func New(dir string) *Store { return &Store{dir: dir} }

// Run describes a run when it begins.
type Run struct {
	Start   time.Time
	Command string // "" leaves it out
	Hosts   []host.Host
	How     How
}

// How is what it takes to do a run once more, beside hosts and command. The
// zero value is a command without input and without flags.
type How struct {
	Stdin  bool                `json:"stdin,omitempty"`  // the command read what our standard input held, which is not kept
	Script *Script             `json:"script,omitempty"` // a local script was run; Command only describes it
	Flags  map[string][]string `json:"flags,omitempty"`  // flags that were given, by their long names
	Unkept []string            `json:"unkept,omitempty"` // names of options that were given and left out, since they may hold secrets
}

// Script is a local script that was run on the hosts.
type Script struct {
	Path   string   `json:"path"`   // absolute
	SHA256 string   `json:"sha256"` // of its content, in hex
	Args   []string `json:"args,omitempty"`
}

// Recorder writes the record of one run. It is a fleet.Sink whose methods never
// fail: a record that cannot be kept must not end the run. Close tells.
type Recorder struct {
	ID string // of the run, sorts by time

	mu   sync.Mutex
	file *os.File
	err  error
}

var _ fleet.Sink = (*Recorder)(nil)

// line is one line of a record; exactly one field besides Schema is set.
type line struct {
	Schema string      `json:"schema,omitempty"` // in the first line
	Run    *runLine    `json:"run,omitempty"`
	Result *resultLine `json:"result,omitempty"`
	End    *endLine    `json:"end,omitempty"`
}

type runLine struct {
	ID      string    `json:"id"`
	Start   time.Time `json:"start"`
	Command string    `json:"command,omitempty"`
	Hosts   string    `json:"hosts"` // folded, so that ten thousand take little room
	How
}

type resultLine struct {
	Host      string `json:"host"`
	Status    string `json:"status"`
	Ran       string `json:"ran"`
	Class     string `json:"class,omitempty"`
	Exit      int    `json:"exit"` // -1 = none
	Signal    string `json:"signal,omitempty"`
	Error     string `json:"error,omitempty"`
	Missing   string `json:"incomplete,omitempty"` // why output is
	ElapsedNS int64  `json:"elapsed_ns"`
}

type endLine struct {
	ElapsedNS int64 `json:"elapsed_ns"`
}

// Begin starts a record. Close must be called on it.
func (s *Store) Begin(run Run) (*Recorder, error) {
	folder, err := s.folder(safedir.Make)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer folder.Close()
	id := run.Start.UTC().Format("20060102T150405.000000000Z") + "-" + strings.ToLower(rand.Text()[:6])
	file, err := folder.OpenFile(id+suffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	var names []string
	for _, h := range run.Hosts {
		names = append(names, h.Exact())
	}
	r := &Recorder{ID: id, file: file}
	r.write(line{Schema: Schema, Run: &runLine{
		ID: id, Start: run.Start.UTC(), Command: run.Command, Hosts: hostset.Fold(names), How: run.How,
	}})
	if r.err != nil {
		return nil, errors.Join(r.err, file.Close(), folder.Remove(id+suffix))
	}
	return r, nil
}

// folder opens the folder, which must be out of other users' reach: what stands in
// it is run again.
func (s *Store) folder(open func(string) (*safedir.Folder, error)) (*safedir.Folder, error) {
	if s.dir == "" {
		return nil, errors.New("neither XDG_STATE_HOME nor HOME is set")
	}
	return open(s.dir)
}

// Output is not recorded.
func (r *Recorder) Output(fleet.Event) error { return nil }

// Done records how a host ended.
func (r *Recorder) Done(res fleet.Result) error {
	r.write(line{Result: &resultLine{
		Host: res.Host.Exact(), Status: res.Status().String(), Ran: res.Ran.String(), Class: res.Class.String(),
		Exit: res.Exit, Signal: res.Signal, Error: res.Err, Missing: res.Incomplete, ElapsedNS: res.Elapsed.Nanoseconds(),
	}})
	return nil
}

// Close records the end of the run and returns the first error that the record
// met; what was written until then stays.
func (r *Recorder) Close(elapsed time.Duration) error {
	r.write(line{End: &endLine{ElapsedNS: elapsed.Nanoseconds()}})
	return errors.Join(r.err, r.file.Close())
}

// write appends one line with one write, so that a crash can spoil the last only.
func (r *Recorder) write(l line) {
	data, err := json.Marshal(l)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.err == nil {
		_, err = r.file.Write(append(termsafe.JSON(data), '\n'))
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("history: %w", err)
	}
}

// IDs lists the recorded runs, the newest first. No folder means no runs.
func (s *Store) IDs() ([]string, error) {
	folder, err := s.folder(safedir.Open)
	if errors.Is(err, fs.ErrNotExist) || s.dir == "" {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("history: %w", err)
	}
	defer folder.Close()
	ids, err := folder.Names(suffix)
	for i, name := range ids {
		ids[i] = strings.TrimSuffix(name, suffix)
	}
	slices.Reverse(ids)
	return ids, err
}

// Prune removes all but the newest runs.
func (s *Store) Prune(keep int) error {
	ids, err := s.IDs()
	if err != nil {
		return err
	}
	if len(ids) <= keep {
		return nil
	}
	folder, err := s.folder(safedir.Open)
	if err != nil {
		return fmt.Errorf("history: %w", err)
	}
	defer folder.Close()
	var errs []error
	for _, id := range ids[keep:] {
		errs = append(errs, folder.Remove(id+suffix))
	}
	return errors.Join(errs...)
}
