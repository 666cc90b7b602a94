// Package model turns samples into the numbers that rankings are made of:
// costs per byte of one connection, freed of what other work on the machine
// did to them, and an additive model of cost that predicts cells that were not
// measured. The planner uses it while measuring, the ranking afterwards. It
// does no I/O.
package model

import (
	"math"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// Usable reports whether a sample carries the numbers that its trial is for.
// Everything else is a failed trial.
func Usable(t record.Trial, s record.Sample) bool {
	if s.Outcome != record.OK {
		return false
	}
	switch t.Workload {
	case record.Login:
		return s.Phases != nil && s.Phases.LoginNS > 0
	case record.Copy:
		return s.Bytes > 0 && s.ElapsedNS > 0
	}
	return false
}

// Transfer is what one connection showed, in nanoseconds per byte. N is 0 where
// something could not be measured, and counts slices, or is 1 for a copy, whose error
// only other copies can tell.
type Transfer struct {
	Trial  record.Trial
	Cell   record.Cell
	Wall   stats.Estimate
	Client stats.Estimate
	Server stats.Estimate
	Total  stats.Estimate // of both sides, or of the client where the server is unknown

	ratio  stats.Estimate      // of wall time to the CPU time of the costlier side
	blocks [quantities][]block // of time
	moved  [quantities]float64 // standard error of what long transfers take more or less
}

// costlier is the logarithm of what the side takes that has more to do: the client where the
// server is unknown.
func (t Transfer) costlier() float64 {
	if t.Server.N == 0 {
		return t.Client.Log
	}
	return math.Max(t.Client.Log, t.Server.Log)
}

// ratioToBoth is the ratio of wall time to the CPU time of both sides together.
func (t Transfer) ratioToBoth() stats.Estimate {
	e := t.ratio
	e.Log += t.costlier() - t.Total.Log
	return e
}
