package rank

import (
	"math"
	"slices"
	"testing"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Clocks of whole seconds widen the interval of a copy.
func TestCoarseClock(t *testing.T) {
	whole := slices.Repeat([]record.Sample{{ElapsedNS: 6e9, ElapsedLoNS: 5e9, ElapsedHiNS: 7e9}}, 4)
	e := stats.Estimate{Log: math.Log(6), N: 4}.WithError(clockError(whole), 0)
	if q := e.Interval(); math.Abs(q.Lo-5.05) > 0.1 || math.Abs(q.Hi-6.95) > 0.1+0.1 {
		t.Errorf("whole seconds: %+v", q)
	}
	if err := clockError([]record.Sample{{ElapsedNS: 6e9}}); err != 0 {
		t.Errorf("an exact clock: %v", err)
	}
}
