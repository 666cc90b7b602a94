package history

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/text"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
	"sshpace/internal/sys/journal"
)

// State returns running, done, stopped (hosts were left out), or killed (there is no end).
func (rec *Record) State() string {
	switch {
	case rec.Finished && rec.Summary.Stopped != "":
		return "stopped"
	case rec.Finished:
		return "done"
	case rec.Live:
		return "running"
	}
	return "killed"
}

// Ended returns how many hosts have ended, and how many of these are not ok.
func (rec *Record) Ended() (done, failed int) {
	for _, r := range rec.Results {
		if r.Status() != fleet.NotStarted {
			done++
		}
		if r.Status() == fleet.Failed || r.Status() == fleet.Unreachable {
			failed++
		}
	}
	return done, failed
}

// PrintJobs shows runs with their states.
func (s *Store) PrintJobs(w io.Writer, l Listing) error {
	list, more, err := s.list(l)
	if err != nil {
		return err
	}
	if l.JSON {
		return jobsJSON(w, list)
	}
	table := text.Table{Columns: []text.Column{
		{Head: "ID"}, {Head: "STATE"}, {Head: "DONE", Right: true}, {Head: "FAILED", Right: true}, {Head: "AGE", Right: true}, {Head: "COMMAND", Fit: text.Cut},
	}}
	for _, run := range list {
		rec := run.rec
		if rec == nil {
			continue
		}
		done, failed := rec.Ended()
		state := rec.State()
		if rec.Summary.Unkept > 0 {
			state += ", cut"
		}
		table.Rows = append(table.Rows, []string{termsafe.Line(run.id), state, fmt.Sprintf("%d/%d", done, len(rec.Hosts)), fmt.Sprint(failed), unit.Age(time.Since(rec.Start)), termsafe.OneLine(rec.Command)})
	}
	if _, err = io.WriteString(w, table.Text(max(0, l.Width-1))); err == nil && more > 0 && l.Width > 0 {
		_, err = fmt.Fprintf(w, "%s: sshpace jobs --limit -1\n", unit.Count(more, "older job"))
	}
	return err
}

// job is a run as JSON shows it.
type job struct {
	ID       string          `json:"id"`
	State    string          `json:"state"`
	Start    string          `json:"start"`
	Command  string          `json:"command,omitempty"`
	Hosts    int             `json:"hosts"`
	Done     int             `json:"done"`
	Failed   int             `json:"failed"`
	Sets     map[string]int  `json:"sets"`
	Stopped  string          `json:"stopped,omitempty"` // why
	Elapsed  int64           `json:"elapsed_ns,omitempty"`
	Unkept   int64           `json:"unkept_bytes,omitempty"` // of output
	Detached *output.Process `json:"detached,omitempty"`
}

func jobsJSON(w io.Writer, list []listed) error {
	jobs := []job{}
	for _, run := range list {
		if rec := run.rec; rec != nil {
			done, failed := rec.Ended()
			jobs = append(jobs, job{
				rec.ID, rec.State(), rec.Start.Format(time.RFC3339Nano), rec.Command, len(rec.Hosts), done, failed, rec.counts(),
				rec.Summary.Stopped, rec.Summary.Elapsed.Nanoseconds(), rec.Summary.Unkept, rec.How.Detached,
			})
		}
	}
	return termsafe.WriteJSON(w, struct {
		Schema string `json:"schema"`
		Jobs   []job  `json:"jobs"`
	}{"sshpace.jobs/1", jobs}, "  ")
}

// Stop ends a detached run as an interrupt does, with now as a second one does at once, and waits
// until it has ended. It returns the run then.
func (s *Store) Stop(ctx context.Context, rec *Record, now bool) (*Record, error) {
	f, err := s.open(rec.ID)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	at, machine := rec.How.Detached, ""
	if machine, err = os.Hostname(); err != nil {
		return nil, err
	}
	switch {
	case !journal.Written(f):
		return s.Read(rec.ID)
	case at == nil:
		return nil, fault.Usage("press Ctrl-C there", "run %s is not detached: it has a terminal", rec.ID)
	case at.Machine != machine:
		return nil, fault.Usage("there: sshpace jobs --stop "+rec.ID, "run %s goes on on another machine, %s", rec.ID, at.Machine)
	}
	process, err := os.FindProcess(at.PID)
	if err != nil {
		return nil, err
	}
	defer process.Release()
	for signals := 1; journal.Written(f); sched.For(ctx, 100*time.Millisecond) { // the writer lives, so process is not a later one of its number
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if signals == 0 {
			continue
		}
		if err := process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return nil, err
		}
		if signals--; now {
			signals, now = 1, false
		}
	}
	return s.Read(rec.ID)
}

// Ending says how far a run has come, such as "done: 3 ok, 1 failed".
func (rec *Record) Ending() string {
	return strings.TrimSuffix(rec.State()+": "+rec.ending(), ": ")
}
