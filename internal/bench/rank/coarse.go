package rank

import (
	"fmt"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// clockError is the standard error that the clocks of some samples leave in the logarithm of
// their mean time. Readings of a clock that cuts off are all too short alike, so that
// more of them do not help; 95 % of the range between the bounds is the interval.
func clockError(samples []record.Sample) float64 {
	var lo, hi time.Duration
	for _, s := range samples {
		if s.ElapsedHiNS > 0 {
			lo, hi = lo+s.ElapsedLoNS, hi+s.ElapsedHiNS
		} else {
			lo, hi = lo+s.ElapsedNS, hi+s.ElapsedNS
		}
	}
	if hi <= lo || lo+hi <= 0 {
		return 0
	}
	return stats.Confidence * float64(hi-lo) / float64(hi+lo) / stats.Estimate{Err: 1}.Arm()
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
