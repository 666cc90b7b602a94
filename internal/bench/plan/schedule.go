package plan

import (
	"math"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// openingStep is how many connections one step opens.
const openingStep = 24

// connection is a planned connection: a trial for each direction, which share it.
type connection struct {
	trials []record.Trial
	failed int // times it could not be opened, or was lost before it moved much
	turns  int // since it was opened
}

// connect plans a connection for a cell, with a trial in each direction.
func (d *design) connect(cell alg.Suite, role record.Role, pair int) *connection {
	out := &connection{}
	for _, direction := range d.Directions {
		want := alg.Suite{Cipher: cell.Cipher, MAC: cell.MAC, Kex: d.bulkKex}
		out.trials = append(out.trials, record.Trial{Want: want, Workload: record.Sitting, Direction: direction, Role: role, Pair: pair})
	}
	return out
}

// schedule keeps the connections of a plan: waiting, open, and given-up ones.
type schedule struct {
	design
	steps
	todo, opening, open, dropped []*connection

	logins  logins
	sitting int // counts in the file
	round   int // counts in the file

	file  *record.File
	fresh record.Slices // not in the file yet
	turns map[record.Cell]int
}

func newSchedule(d design) schedule {
	return schedule{design: d, sitting: 1, logins: newLogins(d), file: &record.File{}, turns: map[record.Cell]int{}}
}

// batches returns all slices so far.
func (s *schedule) batches() []record.Slices { return append(slices.Clip(s.file.Slices), s.fresh) }

// left returns the rest of the budget; without one it never ends.
func (s *schedule) left() time.Duration {
	if s.BudgetNS == 0 {
		return math.MaxInt64
	}
	return s.BudgetNS - s.elapsed
}

// next returns the next step, or false when the plan has ended, as it does when no more than unused
// of its budget is left.
func (s *schedule) next(elapsed, unused time.Duration, fresh record.Slices, refill func()) (Step, bool) {
	s.fresh = fresh
	if s.elapsed = elapsed; s.ending == "" && s.left() <= unused {
		s.end(EndBudget)
	}
	step, ok := s.steps.next(elapsed, refill)
	step.Sitting = s.sitting
	return step, ok
}

// progress returns the progress of all plans of connections; rounds is the time of the requested
// rounds.
func (s *schedule) progress(phase string, rounds time.Duration) Progress {
	return Progress{Phase: phase, Round: s.round, Failed: len(s.dropped) * len(s.Directions), Remaining: max(0, min(s.left(), rounds))}
}

// turn returns a step in which a connection moves data.
func (s *schedule) turn(t record.Trial, length time.Duration) Step {
	return Step{Action: Turn, Trials: []record.Trial{t}, Length: length, Round: s.round}
}

// single queues a trial with its own connection.
func (s *schedule) single(t record.Trial) {
	s.queue = append(s.queue, Step{Action: Single, Trials: []record.Trial{s.number(t)}})
}

// end ends the plan. A plan without any result has failed.
func (s *schedule) end(why Ending) {
	if _, never := s.NeverWorked(); never {
		why = EndFailures
	}
	s.ending = why
}

// NeverWorked names a workload that was tried and never worked, whatever else was measured.
func (s *schedule) NeverWorked() (what string, never bool) {
	if len(s.turns) == 0 && len(s.dropped) > 0 && len(s.open) == 0 {
		return "transfer", true
	}
	if s.logins.neverWorked() {
		return "login", true
	}
	return "", false
}

// Observe records a login or a copy. Only a trial that did not even connect counts as a failure.
func (s *schedule) Observe(t record.Trial, sample record.Sample) {
	s.logins.observe(t, sample)
	if unconnected(sample) {
		s.fail(maxInARow)
	} else if sample.Outcome == record.OK {
		s.succeed()
	}
}

// Moved records the result of a turn.
func (s *schedule) Moved(step Step, slice record.Slice) {
	s.turns[step.Trials[0].Cell()]++
	if i := connectionOf(s.open, slice.Trial); i >= 0 {
		s.open[i].turns++
	}
}

// Begin teaches the plan the content of its file. Its connections are gone: they are opened again.
func (s *schedule) Begin(f *record.File) {
	s.file = f
	s.steps.begin(f)
	for _, batch := range f.Slices {
		s.sitting = max(s.sitting, batch.Sitting+1)
		for _, slice := range batch.Slices {
			s.round = max(s.round, slice.Round)
			if t := f.Trials[slice.Trial]; t.Workload == record.Sitting {
				s.turns[t.Cell()]++
			}
		}
	}
	for _, sample := range f.Samples {
		if t := f.Trials[sample.Trial]; t.Workload != record.Sitting {
			s.logins.observe(t, sample)
		}
	}
}

// admit queues the opening of the next n connections.
func (s *schedule) admit(n int) {
	step := Step{Action: Open}
	for _, conn := range s.todo[:n] {
		for i := range conn.trials {
			conn.trials[i] = s.number(conn.trials[i])
			conn.trials[i].Shares = conn.trials[0].ID
		}
		conn.trials[0].Shares = 0
		conn.turns = 0
		step.Trials = append(step.Trials, conn.trials...)
		s.opening = append(s.opening, conn)
	}
	s.todo = s.todo[n:]
	s.queue = append(s.queue, step)
}

// connectionOf finds the connection of a trial.
func connectionOf(conns []*connection, id int) (index int) {
	return slices.IndexFunc(conns, func(s *connection) bool {
		return slices.ContainsFunc(s.trials, func(t record.Trial) bool { return t.ID == id })
	})
}

// Opened records the end of a connection's login.
func (s *schedule) Opened(t record.Trial, sample record.Sample) {
	i := connectionOf(s.opening, t.ID)
	if i < 0 {
		return // the second direction of a connection
	}
	conn := s.opening[i]
	s.opening = slices.Delete(s.opening, i, i+1)
	switch {
	case sample.Outcome == record.OK:
		s.succeed()
		s.open = append(s.open, conn)
		return
	case sample.Outcome == record.Aborted:
		s.todo = append(s.todo, conn)
		return
	}
	if !unconnected(sample) {
		conn.failed++
	}
	s.retry(conn)
	s.fail(min(maxStart, maxAttempts*s.cells()))
}

// retry opens a connection again, unless it was tried often enough.
func (s *schedule) retry(conn *connection) {
	if conn.failed < maxAttempts {
		s.todo = append(s.todo, conn)
		return
	}
	s.dropped = append(s.dropped, conn)
}

// Lost records that a connection ended by itself. It is opened again, unless that happens all the
// time.
func (s *schedule) Lost(t record.Trial) {
	i := connectionOf(s.open, t.ID)
	if i < 0 {
		return
	}
	lost := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	s.queue = slices.DeleteFunc(s.queue, func(step Step) bool {
		return step.Action == Turn && connectionOf([]*connection{lost}, step.Trials[0].ID) == 0
	})
	if lost.turns < fewTurns {
		lost.failed++
	}
	s.retry(lost)
}

// fewTurns is how often a connection must have moved data to be reopened without limit.
const fewTurns = 20
