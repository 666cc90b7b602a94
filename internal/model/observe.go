// Package model turns samples into the numbers that rankings are made of:
// costs per byte of one connection, freed of what other work on the machine
// did to them, and an additive model of cost that predicts cells that were not
// measured. The planner uses it while measuring, the ranking afterwards. It
// does no I/O.
package model

import (
	"sshpace/internal/alg"
	"sshpace/internal/bench"
)

// Ended is the Finding.What under which a file keeps why its run ended.
const Ended = "run ended"

// Usable reports whether a sample carries the numbers that its trial is for.
// Everything else is a failed trial.
func Usable(t bench.Trial, s bench.Sample) bool {
	if s.Outcome != bench.OK {
		return false
	}
	switch t.Workload {
	case bench.Login:
		return s.Phases != nil && s.Phases.LoginNS > 0
	case bench.Copy:
		return s.Bytes > 0 && s.ElapsedNS > 0
	case bench.Transfer:
		for _, segment := range s.Segments {
			if segment.Bytes > 0 && segment.WallNS > 0 {
				return true
			}
		}
	}
	return false
}

// Cell is one distinct computation per byte in one direction. Aliases have
// one cell.
type Cell struct {
	Suite     alg.Suite // cipher and MAC, canonical names
	Direction bench.Direction
}

// CellOf returns the cell that a trial measures.
func CellOf(t bench.Trial) Cell {
	s := alg.NewSuite(alg.Canonical(alg.Cipher, t.Want.Cipher), alg.Canonical(alg.MAC, t.Want.MAC), "")
	return Cell{s, t.Direction}
}

// Transfer is what one transfer trial showed, in nanoseconds per byte. A zero
// field could not be measured.
type Transfer struct {
	Trial  bench.Trial
	Cell   Cell
	Wall   float64
	Client float64
	Server float64
	// DirtyWall and DirtyCost say that no clean segment was left, so that the
	// figure rests on quarantined ones: it must not decide anything alone.
	DirtyWall, DirtyCost bool
}

// Total is the cost of both sides, or of the client alone where the server
// could not be read; 0 if neither could.
func (t Transfer) Total() float64 {
	if t.Client == 0 {
		return 0
	}
	return t.Client + t.Server
}

// TransferOf adds up the clean segments of a sample. Sums and not means of
// ratios, because what one segment's clock reading cuts off, its neighbour has.
// spin is the usual SpinNS of the machine, 0 if unknown. ok is false where the
// sample has nothing to say.
func TransferOf(t bench.Trial, s bench.Sample, spin float64) (Transfer, bool) {
	out := Transfer{Trial: t, Cell: CellOf(t)}
	if t.Workload != bench.Transfer || !Usable(t, s) {
		return out, false
	}
	var clean, all struct{ wall, cost sums }
	for _, segment := range s.Segments {
		if segment.Bytes <= 0 || segment.WallNS <= 0 {
			continue
		}
		dirt := Contamination(segment, spin)
		all.wall.add(segment)
		all.cost.add(segment)
		if !dirt.Wall {
			clean.wall.add(segment)
		}
		if !dirt.Cost {
			clean.cost.add(segment)
		}
	}
	if out.DirtyWall = clean.wall.bytes == 0; out.DirtyWall {
		clean.wall = all.wall
	}
	if out.DirtyCost = clean.cost.bytes == 0; out.DirtyCost {
		clean.cost = all.cost
	}
	out.Wall = clean.wall.per(clean.wall.wall, true)
	out.Client = clean.cost.per(clean.cost.client, clean.cost.hasClient)
	out.Server = clean.cost.per(clean.cost.server, clean.cost.hasServer)
	return out, out.Wall > 0
}

// sums adds up segments; a CPU figure counts only if all of them have it.
type sums struct {
	bytes, wall, client, server float64
	hasClient, hasServer        bool
}

func (s *sums) add(segment bench.Segment) {
	first := s.bytes == 0
	s.bytes += float64(segment.Bytes)
	s.wall += float64(segment.WallNS)
	s.hasClient = segment.ClientCPUNS != nil && (first || s.hasClient)
	s.hasServer = segment.ServerCPUNS != nil && (first || s.hasServer)
	if segment.ClientCPUNS != nil {
		s.client += float64(*segment.ClientCPUNS)
	}
	if segment.ServerCPUNS != nil {
		s.server += float64(*segment.ServerCPUNS)
	}
}

func (s *sums) per(value float64, has bool) float64 {
	if !has || s.bytes <= 0 || value <= 0 {
		return 0
	}
	return value / s.bytes
}
