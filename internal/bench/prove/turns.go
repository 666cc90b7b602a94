//go:build linux

package prove

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/lab"
	"sshpace/internal/bench/model"
	"sshpace/internal/bench/plan"
	"sshpace/internal/record"
)

// roundLimit is when a round has no further slices but the least, as on a slow network.
const roundLimit = 5 * time.Second

// course holds the slices of each choice in a round: brief and usual lengths, which show costs, and
// steady ones, which show throughput, as bench has them. Both choices have each one after the
// other, and the first one alternates from slice to slice.
type course struct {
	lengths []time.Duration
	least   int // at least this many, however long they take
}

func courseWith(server record.ServerKind) course {
	if server == record.ServerRemote {
		return course{slices.Repeat([]time.Duration{plan.PairLength}, 20), 2}
	}
	few := append(slices.Repeat([]time.Duration{plan.BriefLength, plan.UsualLength}, 4), plan.SteadyLength)
	return course{slices.Repeat(few, 9), 2 * len(few)}
}

// pair is one connection of each choice. Every round has new ones: the processes of a connection
// stay for seconds where the scheduler once put them, so that two connections of one choice differ
// by some percent while they are open.
type pair struct {
	driver lab.Driver
	course course
	trials [2]record.Trial // present, advised
	id     int             // of the last trial
	n      int             // slices of each so far
}

func newPair(driver lab.Driver, c course, suites [2]alg.Suite, d record.Direction, firstID int) *pair {
	p := &pair{driver: driver, course: c, id: firstID - 1}
	for k, want := range suites {
		p.trials[k] = record.Trial{Want: want, Workload: record.Sitting, Direction: d}
	}
	return p
}

// round lets both connections take turns, and returns their rates; sample is the reason if a choice
// has none.
func (p *pair) round(ctx context.Context) (got [2]rates, sample record.Sample, err error) {
	s := &script{pair: p}
	for k := range p.trials {
		p.id++
		p.trials[k].ID = p.id
		s.steps = append(s.steps, plan.Step{Action: plan.Open, Trials: p.trials[k : k+1]})
	}
	f := &record.File{Trials: map[int]record.Trial{}}
	err = lab.Run(ctx, lab.Params{}, s, p.driver, f.Sink())
	switch {
	case err != nil:
		return got, s.failed, err
	case ctx.Err() != nil:
		return got, record.Sample{Outcome: record.Aborted}, nil
	case s.lost != "":
		s.failed = record.Sample{Outcome: record.Broken, Detail: fmt.Sprintf("the connection of %s was lost: %s", s.lost, f.Findings[0].Why)}
	}
	if s.failed.Outcome != "" {
		return got, s.failed, nil
	}
	return p.rates(f), record.Sample{Outcome: record.OK}, nil
}

// script is the plan of a round.
type script struct {
	*pair
	steps  []plan.Step
	slices int           // that each choice has had, or is about to have
	began  time.Duration // the first of them
	failed record.Sample // of a connection that did not open
	lost   string        // choice whose connection ended
}

// Next opens both connections, and then lets each move data in turn. It returns false when the
// turns are over.
func (s *script) Next(elapsed time.Duration, _ record.Slices) (plan.Step, bool) {
	if s.slices == 0 {
		s.began = elapsed
	}
	over := s.slices == len(s.course.lengths) || s.slices >= s.course.least && elapsed-s.began > roundLimit
	if len(s.steps) == 0 && !over {
		s.turn(s.course.lengths[s.slices])
		s.slices++
	}
	if len(s.steps) == 0 || s.failed.Outcome != "" || s.lost != "" {
		return plan.Step{}, false
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	return step, true
}

// turn lets both connections move data for a length.
func (s *script) turn(length time.Duration) {
	s.n++
	for _, k := range [2]int{s.n % 2, 1 - s.n%2} {
		s.steps = append(s.steps, plan.Step{Action: plan.Turn, Trials: s.trials[k : k+1], Length: length, Long: length > plan.UsualLength, Sitting: 1})
	}
}

// Opened records a login.
func (s *script) Opened(_ record.Trial, sample record.Sample) {
	if sample.Outcome != record.OK {
		s.failed = sample
	}
}

// Lost records a connection that ended.
func (s *script) Lost(t record.Trial) { s.lost = t.Want.Bulk().String() }

// Moved and Observe have nothing to learn.
func (*script) Moved(plan.Step, record.Slice) {}

// Observe is for trials with their own connection.
func (*script) Observe(record.Trial, record.Sample) {}

// rates returns the rates of both choices in a round.
func (p *pair) rates(f *record.File) (got [2]rates) {
	for _, c := range model.SittingsOf(f.Trials, f.Slices).Connections {
		for k, t := range p.trials {
			if c.Trial.ID == t.ID {
				got[k] = rates{cost: known(c.Cost())}
				if wall := known(c.Wall()); wall > 0 {
					got[k].throughput = 1e9 / wall
				}
			}
		}
	}
	return got
}

// known returns the value of an estimate, 0 where there is none.
func known(e stats.Estimate) float64 {
	if e.N == 0 {
		return 0
	}
	return e.Value()
}
