package rank

import (
	"fmt"
	"math"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// coarseness is what the clocks of some samples leave open: the sums of the
// shortest and the longest times that their readings can stand for.
type coarseness struct {
	lo, hi float64 // seconds
	n      int
}

func (c coarseness) add(s record.Sample) coarseness {
	lo, hi := s.ElapsedNS, s.ElapsedNS
	if s.ElapsedHiNS > 0 {
		lo, hi = s.ElapsedLoNS, s.ElapsedHiNS
	}
	return coarseness{c.lo + lo.Seconds(), c.hi + hi.Seconds(), c.n + 1}
}

// widen makes the interval of a mean hold all that the clocks leave open.
func (c coarseness) widen(q Quantity) Quantity {
	if c.n > 0 {
		q.Lo = math.Min(q.Lo, c.lo/float64(c.n))
		q.Hi = math.Max(q.Hi, c.hi/float64(c.n))
	}
	return q
}

// deviation is the standard error that the clocks leave in the logarithm of the
// mean time. Readings of a clock that cuts off are all too short alike, so that
// more of them do not help; 95 % of the range between the bounds is the interval.
func (c coarseness) deviation() float64 {
	if c.n == 0 || c.hi <= c.lo || c.lo+c.hi <= 0 {
		return 0
	}
	return stats.Confidence * (c.hi - c.lo) / (c.hi + c.lo) / normal95
}

// coarsest says how much the coarsest clock of a file leaves open; "" where all
// are exact.
func (d *data) coarsest() string {
	var most time.Duration
	for _, c := range d.copies {
		most = max(most, c.sample.ElapsedHiNS-c.sample.ElapsedLoNS)
	}
	if most < 100*time.Millisecond {
		return ""
	}
	return fmt.Sprintf("the log's clock is exact to %s of each time; the intervals of copies include that", most.Round(10*time.Millisecond))
}
