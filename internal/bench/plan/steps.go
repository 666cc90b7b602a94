package plan

import (
	"time"

	"sshpace/internal/record"
)

// steps hands out the steps of a plan, counts its failures, and ends it.
type steps struct {
	id      int // of the last trial
	queue   []Step
	elapsed time.Duration
	worked  bool // something has
	inARow  int  // failures in a row
	ending  Ending
}

// next returns the next step of the queue, which refill fills, or false when the plan has ended.
func (s *steps) next(elapsed time.Duration, refill func()) (Step, bool) {
	for s.elapsed = elapsed; s.ending == "" && len(s.queue) == 0; {
		refill()
	}
	if s.ending != "" {
		return Step{}, false
	}
	step := s.queue[0]
	s.queue = s.queue[1:]
	return step, true
}

// number gives a trial its ID.
func (s *steps) number(t record.Trial) record.Trial {
	s.id++
	t.ID = s.id
	return t
}

// begin continues after the trials of a file.
func (s *steps) begin(f *record.File) {
	for id := range f.Trials {
		s.id = max(s.id, id)
	}
}

// succeed records a success.
func (s *steps) succeed() { s.worked, s.inARow = true, 0 }

// fail records a failure, and ends the plan after too many in a row; atStart is their limit before
// the first success.
func (s *steps) fail(atStart int) {
	if s.inARow++; s.inARow >= maxInARow || !s.worked && s.inARow >= atStart {
		s.ending = EndFailures
	}
}

// End returns the reason of the plan's end; "" while it has not ended, or if it was interrupted.
func (s *steps) End() Ending { return s.ending }
