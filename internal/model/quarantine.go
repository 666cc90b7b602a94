package model

import "sshpace/internal/bench"

// Shares of a segment's wall time, and of the usual spin time, beyond which a
// segment is quarantined. This is the one place where that is decided.
const (
	maxWaitShare  = 0.05 // a side was runnable, but had no core: wall time is not SSH's own
	maxStealShare = 0.02 // the hypervisor ran something else
	maxSpinRatio  = 1.15 // the core ran slower than usual: frequency, or a busy sibling
	maxCostSteal  = 0.20 // so much steal leaves cold caches behind: cost per byte suffers too
)

// Dirt says which figures of a segment are contaminated. Run-queue delay and
// foreign load spoil wall time only: the CPU time per byte stays usable, which
// is why it can rank on a busy machine.
type Dirt struct{ Wall, Cost bool }

// Contamination judges one segment. spin is the usual SpinNS of the machine, 0
// if unknown. A segment that its driver marked is contaminated for wall time.
func Contamination(s bench.Segment, spin float64) Dirt {
	wall := float64(s.WallNS)
	if wall <= 0 {
		return Dirt{true, true}
	}
	wait := 0.0
	if s.ClientWaitNS != nil {
		wait = float64(*s.ClientWaitNS)
	}
	if s.ServerWaitNS != nil {
		wait = max(wait, float64(*s.ServerWaitNS))
	}
	slow := spin > 0 && float64(s.SpinNS) > maxSpinRatio*spin
	steal := float64(s.StealNS) / wall
	return Dirt{
		Wall: s.Contaminated != "" || wait/wall > maxWaitShare || steal > maxStealShare || slow,
		Cost: slow || steal > maxCostSteal,
	}
}
