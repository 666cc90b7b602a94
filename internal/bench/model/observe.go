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
	case record.Sitting:
		return true // what it moved is in the slices
	case record.Login:
		return s.Phases != nil && s.Phases.LoginNS > 0
	case record.Copy:
		return s.Bytes > 0 && s.ElapsedNS > 0
	}
	return false
}

// Transfer is what one connection showed, or one copy.
type Transfer struct {
	Trial record.Trial
	Cell  record.Cell

	// of has ns per byte of client and server, and the ratio of wall time to the CPU time of the costlier
	// side, which is ns per byte where that is unknown. N is 0 of what could not be measured.
	of [quantities]located
}

// Cost is what both sides take per byte, or the client alone where the server is unknown. N is 0 where it could
// not be measured.
func (t Transfer) Cost() stats.Estimate {
	out := t.of[client].Estimate
	if t.of[client].N > 0 && t.of[server].N > 0 {
		out.Log = sum(t.of[client].Log, t.of[server].Log)
	}
	return out
}

// Wall is what a long transfer takes per byte.
func (t Transfer) Wall() stats.Estimate {
	e := t.of[wall].Estimate
	if t.of[client].N > 0 && e.N > 0 {
		e.Log += t.costlier()
	}
	return e
}

// costlier is the logarithm of what the side takes that has more to do: the client where the
// server is unknown.
func (t Transfer) costlier() float64 {
	if t.of[server].N == 0 {
		return t.of[client].Log
	}
	return math.Max(t.of[client].Log, t.of[server].Log)
}

// sum is the logarithm of the sum of two logarithms' values.
func sum(a, b float64) float64 { return math.Log(math.Exp(a) + math.Exp(b)) }
