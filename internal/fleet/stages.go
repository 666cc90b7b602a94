package fleet

import (
	"time"

	"sshpace/internal/base/fault"
)

// Stages say how a run goes from few hosts to many, as people ask for it.
type Stages struct {
	Canary      int  // so many hosts first, and the others only if none of them fails
	ThenConfirm bool // somebody is asked after these, whatever became of them
	Batches     Shares
	Pause       time.Duration // between two batches
	MaxFail     Shares        // one, or none
}

// Check finds what makes no sense together.
func (s Stages) Check() error {
	for _, size := range s.Batches {
		if size.Percent == 0 && size.Count == 0 {
			return fault.Usage("a batch has at least one host", "--batch %s", s.Batches.String())
		}
	}
	switch {
	case s.ThenConfirm && s.Canary == 0:
		return fault.Usage("give --canary N, too", "--then-confirm asks after a canary")
	case len(s.MaxFail) > 1:
		return fault.Usage("give one number or part", "--max-fail %s", s.MaxFail.String())
	case s.Pause > 0 && s.Canary == 0 && len(s.Batches) == 0:
		return fault.Usage("give --batch or --canary, too", "--pause is between batches")
	}
	return nil
}

// Pace is what that means for a run.
func (s Stages) Pace() Pace {
	p := Pace{Pause: s.Pause, Batches: s.Batches, FirstMustPass: s.Canary > 0 && !s.ThenConfirm && len(s.MaxFail) == 0}
	if s.Canary > 0 {
		p.Batches = append([]Share{{Count: s.Canary}}, s.Batches...)
		if len(s.Batches) == 0 {
			p.Batches = append(p.Batches, Share{Percent: 100})
		}
	}
	if len(s.MaxFail) > 0 {
		p.MaxFail = &s.MaxFail[0]
	}
	return p
}
