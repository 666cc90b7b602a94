package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

// Driver keeps connections open and lets one of them at a time move data.
type Driver interface {
	// Run makes one connection and measures it. A trial that fails is a sample with an outcome; an
	// error means that the lab itself is broken.
	Run(ctx context.Context, t record.Trial) (record.Sample, error)
	// Open opens connections and reports the sample of each once its login is over.
	Open(ctx context.Context, trials []record.Trial, each func(record.Trial, record.Sample) error) error
	// Slice lets the connection of a trial move bytes that cost it about length of CPU time. lost
	// is the reason if the connection ended. An error that is not Idle means that the lab is
	// broken.
	Slice(ctx context.Context, t record.Trial, length time.Duration) (s record.Slice, lost string, err error)
	// Close closes the connections of trials and returns how often those that did so renewed their
	// keys.
	Close(ids ...int) (rekeys map[int]int)
}

// Pause says that this process or the machine stood still during a slice: the user stopped it
// (Ctrl-Z), or the machine was suspended. Such a slice is useless.
type Pause struct{ For time.Duration }

func (p *Pause) Error() string { return fmt.Sprintf("stood still for %v", p.For) }

// Idle reports whether a slice is empty for a harmless reason: a pause, or the end of ctx.
func Idle(err error) bool {
	_, paused := errors.AsType[*Pause](err)
	return paused || errors.Is(err, context.Canceled)
}

// Plan returns the next step, and receives its result (plan.Plan).
type Plan interface {
	Next(elapsed time.Duration, fresh record.Slices) (plan.Step, bool)
	Opened(record.Trial, record.Sample)
	Moved(plan.Step, record.Slice)
	Lost(record.Trial)
	Observe(record.Trial, record.Sample)
}

// session is a running sitting.
type session struct {
	params Params
	plan   Plan
	driver Driver
	sink   record.Sink
	slices record.Slices        // not yet written
	trials map[int]record.Trial // open
	paused time.Duration        // how long nothing could be measured
}

// flushAfter is the most that a killed run loses.
const flushAfter = 900 * time.Millisecond

// Run carries out a plan until it is complete, drained or cancelled.
func Run(ctx context.Context, params Params, p Plan, d Driver, sink record.Sink) (err error) {
	if params.Drain == nil {
		params.Drain = ctx
	}
	if params.Now == nil {
		params.Now = time.Now
	}
	s := &session{params: params, plan: p, driver: d, sink: sink, trials: map[int]record.Trial{}}
	defer func() {
		err = errors.Join(err, s.flush(), s.closeAll())
	}()
	start := params.Now()
	for params.Drain.Err() == nil {
		step, ok := p.Next(params.Elapsed+params.Now().Sub(start)-s.paused, s.slices)
		if !ok {
			return nil
		}
		if err := s.do(ctx, step); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// do carries out one step.
func (s *session) do(ctx context.Context, step plan.Step) error {
	if step.Action == plan.Turn {
		return s.turn(ctx, step)
	}
	if err := s.flush(); err != nil {
		return err
	}
	switch step.Action {
	case plan.Open:
		return s.open(ctx, step.Trials)
	case plan.Single:
		return s.single(ctx, step.Trials[0])
	}
	return s.close(step.Trials)
}

// turn lets one connection move data.
func (s *session) turn(ctx context.Context, step plan.Step) error {
	t := s.named(step.Trials[0])
	began := s.params.Now()
	slice, lost, err := s.driver.Slice(ctx, t, step.Length)
	if pause, ok := errors.AsType[*Pause](err); ok {
		s.paused += pause.For
	}
	if Idle(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if lost != "" {
		delete(s.trials, t.ID)
		s.plan.Lost(step.Trials[0])
		return s.write(&record.Finding{What: fmt.Sprintf("connection %d was lost", t.ID), Why: lost})
	}
	if len(s.slices.Slices) == 0 {
		s.slices.Sitting, s.slices.Start = step.Sitting, began
	}
	slice.Round, slice.StartNS, slice.Long = step.Round, began.Sub(s.slices.Start), step.Long
	s.slices.Slices = append(s.slices.Slices, slice)
	s.plan.Moved(step, slice)
	if s.params.Now().Sub(s.slices.Start) > flushAfter {
		return s.flush()
	}
	return nil
}

// flush writes the slices that are not written yet.
func (s *session) flush() error {
	if len(s.slices.Slices) == 0 {
		return nil
	}
	slices := s.slices
	s.slices = record.Slices{}
	return s.write(&slices)
}

func (s *session) write(r record.Record) error {
	if err := s.sink(r); err != nil {
		return fmt.Errorf("write record: %w", err)
	}
	return nil
}

// named returns a trial with the target's label.
func (s *session) named(t record.Trial) record.Trial {
	t.Target = s.params.Target
	return t
}

// open opens connections. The negotiation of each is written at once, so that its slices can be
// used however the run ends.
func (s *session) open(ctx context.Context, trials []record.Trial) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(s.params.Drain, stop)()
	var named []record.Trial
	for _, t := range trials {
		named = append(named, s.named(t))
	}
	return s.driver.Open(ctx, named, func(t record.Trial, sample record.Sample) error {
		sample.Trial = t.ID
		if check(t, &sample); sample.Outcome == record.OK {
			s.trials[t.ID] = t
		} else {
			s.driver.Close(t.ID)
		}
		s.plan.Opened(t, sample)
		if err := s.write(&t); err != nil {
			return err
		}
		return s.write(&sample)
	})
}

// single carries out a trial with its own connection.
func (s *session) single(ctx context.Context, t record.Trial) error {
	t = s.named(t)
	if err := s.write(&t); err != nil {
		return err
	}
	sample, err := s.driver.Run(ctx, t)
	if err != nil {
		return err
	}
	sample.Trial = t.ID
	check(t, &sample)
	if err := s.write(&sample); err != nil {
		return err
	}
	s.plan.Observe(t, sample)
	return nil
}

// close closes connections and notes which of them renewed their keys.
func (s *session) close(trials []record.Trial) error {
	var ids []int
	for _, t := range trials {
		ids = append(ids, t.ID)
		delete(s.trials, t.ID)
	}
	for id, n := range s.driver.Close(ids...) {
		if err := s.write(&record.Finding{
			What: fmt.Sprintf("connection %d exchanged keys again", id), Why: "the slices in which that happened cost more", Evidence: fmt.Sprintf("rekeyings: %d", n),
		}); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) closeAll() error {
	var open []record.Trial
	for _, t := range s.trials {
		open = append(open, t)
	}
	return s.close(open)
}
