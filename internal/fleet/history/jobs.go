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

// State returns running, done, stopped (hosts were left out), left (launchers continue), or
// killed (there is no end).
func (rec *Record) State() string {
	switch {
	case rec.Finished && (rec.Summary.Stopped != "" || rec.Summary.NotStarted > 0 || rec.Summary.Total() < len(rec.Hosts)):
		return "stopped"
	case rec.Finished:
		return "done"
	case rec.Live:
		return "running"
	case rec.How.Job != "":
		return "left"
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
	var jobs []Job
	for _, run := range list {
		if run.rec == nil {
			continue
		}
		job := run.rec.job()
		if !l.JSON {
			job.ID = run.id
		}
		jobs = append(jobs, job)
	}
	if len(jobs) == 0 && !l.JSON {
		_, err = fmt.Fprintln(w, "no job is known; sshpace run --detach starts one, and sshpace jobs --all lists other runs")
		return err
	}
	if err = WriteJobs(w, jobs, l); err == nil && more > 0 && l.Width > 0 && !l.JSON {
		_, err = fmt.Fprintf(w, "%s: sshpace jobs --limit -1\n", unit.Count(more, "older job"))
	}
	return err
}

// Job is a run, or a job of a hub, in a list.
type Job struct {
	ID       string          `json:"id"`
	State    string          `json:"state"`
	Start    time.Time       `json:"start"`
	Command  string          `json:"command,omitempty"`
	Hosts    int             `json:"hosts"`
	Done     int             `json:"done"`
	Failed   int             `json:"failed"`
	Sets     map[string]int  `json:"sets,omitempty"`
	Stopped  string          `json:"stopped,omitempty"` // why
	Elapsed  int64           `json:"elapsed_ns,omitempty"`
	Unkept   int64           `json:"unkept_bytes,omitempty"` // of output
	Detached *output.Process `json:"detached,omitempty"`
}

func (rec *Record) job() Job {
	done, failed := rec.Ended()
	return Job{
		rec.ID, rec.State(), rec.Start, rec.Command, len(rec.Hosts), done, failed, rec.counts(),
		rec.Summary.Stopped, rec.Summary.Elapsed.Nanoseconds(), rec.Summary.Unkept, rec.How.Detached,
	}
}

// WriteJobs shows jobs as a table, or in JSON.
func WriteJobs(w io.Writer, jobs []Job, l Listing) error {
	if l.JSON {
		return termsafe.WriteJSON(w, struct {
			Schema string `json:"schema"`
			Jobs   []Job  `json:"jobs"`
		}{"sshpace.jobs/1", append([]Job{}, jobs...)}, "  ")
	}
	table := text.Table{Columns: []text.Column{
		{Head: "ID"}, {Head: "STATE"}, {Head: "DONE", Right: true}, {Head: "FAILED", Right: true}, {Head: "AGE", Right: true}, {Head: "COMMAND", Fit: text.Cut},
	}}
	for _, job := range jobs {
		if job.Unkept > 0 {
			job.State += ", cut"
		}
		table.Rows = append(table.Rows, []string{
			termsafe.Line(job.ID), job.State, fmt.Sprintf("%d/%d", job.Done, job.Hosts), fmt.Sprint(job.Failed), unit.Age(time.Since(job.Start)), termsafe.OneLine(job.Command),
		})
	}
	_, err := io.WriteString(w, table.Text(max(0, l.Width-1)))
	return err
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
