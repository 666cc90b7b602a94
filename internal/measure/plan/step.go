package plan

import (
	"time"

	"sshpace/internal/record"
)

// Action is what a step does.
type Action int

// The actions.
const (
	Open   Action = iota // open the connections of Trials, several at a time
	Turn                 // let the connection of Trials[0] move data
	Single               // carry Trials[0] out by itself: a login, a copy
	Close                // close the connections of Trials
)

// Step is one step of a plan. Its trials have their IDs.
type Step struct {
	Action  Action
	Trials  []record.Trial
	Length  time.Duration // of a turn: how much CPU time its bytes may cost the costlier side
	Long    bool          // a turn long enough for throughput
	Round   int           // of a turn
	Sitting int           // of a turn
}

// Singles is a plan of trials that have a connection of their own, one after the
// other.
type Singles struct {
	*Plan
	id int
}

// NewSingles numbers the trials of p from firstID.
func NewSingles(p *Plan, firstID int) *Singles { return &Singles{p, firstID - 1} }

// Next returns the next trial as a step.
func (s *Singles) Next(elapsed time.Duration) (Step, bool) {
	t, ok := s.Plan.Next(elapsed)
	if !ok {
		return Step{}, false
	}
	s.id++
	t.ID = s.id
	return Step{Action: Single, Trials: []record.Trial{t}}, true
}

// Opened, Moved and Lost are for plans of sittings.
func (s *Singles) Opened(record.Trial, record.Sample) {}
func (s *Singles) Moved(Step, record.Slice)           {}
func (s *Singles) Lost(record.Trial)                  {}

// Replay ticks off what a file holds that is gone on with.
func (s *Singles) Replay(f *record.File) {
	for id := range f.Trials {
		s.id = max(s.id, id)
	}
	for _, sample := range f.Samples {
		s.Plan.Observe(f.Trials[sample.Trial], sample)
	}
}
