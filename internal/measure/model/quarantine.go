package model

import (
	"time"

	"sshpace/internal/record"
)

// Limits beyond which a segment is quarantined. This is the one place where
// that is decided. Shares are of the segment's wall time.
const (
	// Other work used that much of a core, while a side of ours waited for one.
	// /proc/stat counts in ticks of 10 ms, so a smaller share of a segment of 60
	// ms can be chance.
	maxForeign = 0.30
	minWait    = 0.05
	// A side waited so long that something else must have run. ssh, sshd and the
	// sink keep each other waiting for a quarter of the time on two cores.
	maxWait = 0.60
	// The hypervisor ran something else.
	maxSteal = 0.02
	// The core ran slower than usual: its frequency, or a busy sibling. Under
	// foreign load the probe itself may have been interrupted, and says nothing.
	maxSpin = 1.15
	// So much steal leaves cold caches behind: cost per byte suffers too.
	maxCostSteal = 0.20
)

// Dirt says which figures of a segment are contaminated. Run-queue delay and
// foreign load spoil wall time only: the CPU time per byte stays usable, which
// is why it can rank on a busy machine.
type Dirt struct{ Wall, Cost bool }

// Contamination judges one segment. spin is the usual SpinNS of the machine, 0
// if unknown. A segment that its driver marked is contaminated for wall time.
func Contamination(s record.Segment, spin float64) Dirt {
	wall := float64(s.WallNS)
	if wall <= 0 {
		return Dirt{true, true}
	}
	wait, waits := 0.0, s.ClientWaitNS != nil || s.ServerWaitNS != nil
	for _, w := range []*time.Duration{s.ClientWaitNS, s.ServerWaitNS} {
		if w != nil {
			wait = max(wait, float64(*w)/wall)
		}
	}
	foreign, steal := float64(s.ForeignCPUNS)/wall, float64(s.StealNS)/wall
	contended := foreign > maxForeign && (!waits || wait > minWait) || wait > maxWait
	slow := spin > 0 && float64(s.SpinNS) > maxSpin*spin && foreign < maxForeign
	return Dirt{
		Wall: s.Contaminated != "" || contended || slow || steal > maxSteal,
		Cost: slow || steal > maxCostSteal,
	}
}
