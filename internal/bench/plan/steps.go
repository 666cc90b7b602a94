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

// next returns the next step of the queue, which refill fills until the plan ends.
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

// replay goes on behind the trials of a file.
func (s *steps) replay(f *record.File) {
	for id := range f.Trials {
		s.id = max(s.id, id)
	}
}

// succeed notes that something worked.
func (s *steps) succeed() { s.worked, s.inARow = true, 0 }

// fail notes that something did not, and ends the plan after too many failures in a row;
// atStart is how many they may be before anything worked.
func (s *steps) fail(atStart int) {
	if s.inARow++; s.inARow >= maxInARow || !s.worked && s.inARow >= atStart {
		s.ending = EndFailures
	}
}

// End is why the plan ended; "" while it has not, or if it was interrupted.
func (s *steps) End() Ending { return s.ending }
