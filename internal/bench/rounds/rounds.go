// Package rounds measures subjects in rounds: transfer methods and kinds of login. It records each
// subject and each of its readings, gives up those that keep failing, and continues earlier
// results.
package rounds

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/record"
)

// Subject is something to measure.
type Subject struct {
	record.Subject // its number is set when it is recorded
	// Prepare is called before a method is recorded; its error is the reason why the method is not
	// measured. nil: nothing is called.
	Prepare func(ctx context.Context) error
	Runs    []Run // of each round; none: it is not measured
	// Shows reports whether the wall times of its readings give a figure: otherwise it gets some
	// rounds more. nil: they do.
	Shows func(walls map[record.RunKind][]time.Duration) bool

	walls  map[record.RunKind][]time.Duration // earlier ones included; without failed and simultaneous ones
	failed int
}

// Run is one run of a subject in a round.
type Run struct {
	Kind record.RunKind
	// Do carries it out. A run that failed is a reading; an error ends the measurement.
	Do func(ctx context.Context) (record.Reading, error)
}

// Plan says how subjects are measured.
type Plan struct {
	Rounds   sched.Rounds // half of a budget is for preparing
	Seed     uint64
	Old      *record.File  // earlier measurements, to continue; nil: none
	Spent    time.Duration // of the budget, on those
	List     bool          // the subjects are recorded, and none is measured
	Patience int           // how many runs of a subject may fail
	Note     record.Sink
	// Told is called before each run, never while something is timed; round 0 is preparing. nil:
	// nothing is called.
	Told func(s record.Subject, round int)
	// After is called after each round with its time and the rest of the budget; nil: nothing is
	// called.
	After func(m *Measurement, took, left time.Duration) error
}

// Measurement is a plan that is being carried out.
type Measurement struct {
	Plan
	all   []*Subject
	began time.Time
	mu    sync.Mutex // guards the counts of subjects
}

// again is how many rounds more a subject without a figure gets, because other work held up its
// short runs for longer than its long ones took.
const again = 3

// Measure prepares all subjects, and then carries out their runs in every round, in random order: a
// temporary slowdown of the machine hits all of them alike; subjects without a figure then get some
// rounds more. It ends after the run in which drain ends, or at once with ctx. A subject that keeps
// failing is given up, the others continue.
func (p Plan) Measure(ctx, drain context.Context, all []*Subject) error {
	m := &Measurement{Plan: p, all: all, began: time.Now()}
	last := m.remember()
	for _, s := range all {
		if drain.Err() != nil {
			return context.Cause(ctx)
		}
		if s.ID > 0 {
			continue
		}
		last++
		s.ID = last
		if err := m.prepare(ctx, s); err != nil {
			return err
		}
	}
	if p.List || len(m.Left()) == 0 {
		return context.Cause(ctx)
	}
	made := math.MaxInt
	for _, u := range m.due(made) {
		made = min(made, len(u.walls[u.Kind]))
	}
	loop := sched.Loop[turn]{Rounds: p.Rounds, Seed: p.Seed, Made: made, Spent: p.Spent + time.Since(m.began), Due: func(round int) []turn {
		made = round + 1
		return m.due(round)
	}, Take: func(_ int, u turn) error {
		if !slices.Contains(m.Left(), u.Subject) { // it was given up in this round
			return nil
		}
		m.told(u.Subject, made)
		return m.Take(ctx, u.Subject, u.Run)
	}}
	if p.After != nil {
		loop.After = func(took, left time.Duration) error { return p.After(m, took, left) }
	}
	if err := loop.Run(drain); err != nil {
		return err
	}
	loop.Rounds, loop.Made, loop.After = sched.Rounds{Count: made + again}, made, nil
	loop.Due = func(round int) []turn {
		if p.Rounds.Budget > 0 && time.Since(m.began) >= p.Rounds.Budget {
			return nil
		}
		return slices.DeleteFunc(m.due(round), func(u turn) bool { return u.Shows == nil || u.Shows(u.walls) })
	}
	return cmp.Or(loop.Run(drain), context.Cause(ctx))
}

// remember finds the earlier measurements of subjects, and returns the last number among those.
// Methods that could not be measured then are tried again.
func (m *Measurement) remember() (last int) {
	if m.Old == nil {
		return 0
	}
	for _, old := range m.Old.Subjects {
		last = max(last, old.ID)
		i := slices.IndexFunc(m.all, func(s *Subject) bool { return s.Same(old) && (s.Method == nil || s.Why == old.Why) })
		if i < 0 {
			continue
		}
		s := m.all[i]
		if s.ID = old.ID; s.Method != nil {
			*s.Method = *old.Method
		}
		for _, r := range m.Old.Readings {
			if r.Subject == old.ID && r.Failure == "" {
				s.took(r)
			}
		}
	}
	return last
}

// prepare prepares a subject and records it.
func (m *Measurement) prepare(ctx context.Context, s *Subject) error {
	switch {
	case m.List || s.Prepare == nil || s.Why != "":
	case m.Rounds.Budget > 0 && time.Since(m.began) > m.Rounds.Budget/2:
		s.Why = "no time was left; use a longer --budget, or pick some with --only"
	default:
		m.told(s, 0)
		err := s.Prepare(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			s.Why = err.Error()
		}
	}
	return m.Note(&s.Subject)
}

func (m *Measurement) told(s *Subject, round int) {
	if m.Told != nil {
		m.Told(s.Subject, round)
	}
}

// took counts a reading; one of simultaneous ones is not of its round.
func (s *Subject) took(r record.Reading) {
	if s.walls == nil {
		s.walls = map[record.RunKind][]time.Duration{}
	}
	if r.Core == nil {
		s.walls[r.Kind] = append(s.walls[r.Kind], r.WallNS)
	}
}

// turn is one run of a subject.
type turn struct {
	*Subject
	Run
}

// due returns the runs of a round.
func (m *Measurement) due(round int) (due []turn) {
	for _, s := range m.Left() {
		for _, run := range s.Runs {
			if round >= len(s.walls[run.Kind]) {
				due = append(due, turn{s, run})
			}
		}
	}
	return due
}

// Left returns the subjects that are measured and not given up.
func (m *Measurement) Left() []*Subject {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.all), func(s *Subject) bool {
		return len(s.Runs) == 0 || s.Method != nil && s.Why != "" || s.failed >= m.Patience
	})
}

// Take carries out a run of a subject and records it.
func (m *Measurement) Take(ctx context.Context, s *Subject, run Run) error {
	start := time.Now().UTC()
	r, err := run.Do(ctx)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil && r.Failure == "":
		return err
	case r.Start.IsZero():
		r.Start = start
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Subject, r.Kind = s.ID, run.Kind; r.Failure != "" {
		s.failed++
	} else {
		s.took(r)
	}
	return cmp.Or(m.Note(&r), err)
}
