// Package model turns samples into the numbers that rankings are made of:
// costs per byte of one connection, freed of what other work on the machine
// did to them, and an additive model of cost that predicts cells that were not
// measured. The planner uses it while measuring, the ranking afterwards. It
// does no I/O.
package model

import (
	"math"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
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
	case record.Transfer:
		for _, segment := range s.Segments {
			if segment.Bytes > 0 && segment.WallNS > 0 {
				return true
			}
		}
	}
	return false
}

// Transfer is what one connection showed, in nanoseconds per byte. N is 0 where
// something could not be measured, and counts slices, or 1 for a transfer by
// itself, whose error only other connections can tell.
type Transfer struct {
	Trial   record.Trial
	Cell    record.Cell
	Stretch int // connections of one stretch share an estimate of the machine's level
	Wall    stats.Estimate
	Client  stats.Estimate
	Server  stats.Estimate
	Total   stats.Estimate // of both sides, or of the client where the server is unknown
	// DirtyWall and DirtyCost say that no clean segment was left, so that the
	// figure rests on quarantined ones: it must not decide anything alone.
	DirtyWall, DirtyCost bool
	// Contended says that other work took a core most of the time.
	Contended  bool
	ClientWait float64 // share of the time that the client waited for a core
	ServerWait float64

	foreign  float64                    // cores that other programs kept busy
	fewParts bool                       // of slices show the throughput of its cell, by which the scheduler's luck shows, too
	apart    [quantities]float64        // standard error that cells with the same cipher or MAC share in this run
	slowed   [quantities]stats.Estimate // by other guests, relative to the machine's best moments
}

// of is one quantity, and whether it rests on quarantined segments alone.
func (t Transfer) of(q quantity) (e stats.Estimate, dirty bool) {
	switch q {
	case wall:
		return t.Wall, t.DirtyWall
	case client:
		return t.Client, t.DirtyCost
	case server:
		return t.Server, t.DirtyCost
	}
	return t.Total, t.DirtyCost
}

// single is the estimate that one transfer gives of ns per byte, 0 meaning
// unknown.
func single(nsPerByte float64) stats.Estimate {
	if nsPerByte <= 0 {
		return stats.Estimate{}
	}
	return stats.Estimate{Log: math.Log(nsPerByte), N: 1}
}

// Once is a transfer that was timed as a whole.
func Once(t record.Trial, wallNSPerByte float64) Transfer {
	return Transfer{Trial: t, Cell: t.Cell(), Wall: single(wallNSPerByte)}
}

// TransferOf summarises the clean segments of a sample. Wall time is their
// sum, which is what a copy would take. Costs are the lower quartile over
// segments: when other work crowds client and server on one core, some segments
// cost twice as much for a moment. spin is the usual SpinNS of the machine, 0 if unknown.
// ok is false where the sample has nothing to say.
func TransferOf(t record.Trial, s record.Sample, spin float64) (Transfer, bool) {
	out := Transfer{Trial: t, Cell: t.Cell()}
	if t.Workload != record.Transfer || !Usable(t, s) {
		return out, false
	}
	var cleanWall, cleanCost, all []record.Segment
	for _, segment := range s.Segments {
		if segment.Bytes <= 0 || segment.WallNS <= 0 {
			continue
		}
		dirt := Contamination(segment, spin)
		all = append(all, segment)
		if !dirt.Wall {
			cleanWall = append(cleanWall, segment)
		}
		if !dirt.Cost {
			cleanCost = append(cleanCost, segment)
		}
	}
	if out.DirtyWall = len(cleanWall) == 0; out.DirtyWall {
		cleanWall = all
	}
	if out.DirtyCost = len(cleanCost) == 0; out.DirtyCost {
		cleanCost = all
	}
	out.Wall = single(wallOf(cleanWall, out.DirtyWall))
	out.contention(all)
	client := costOf(cleanCost, func(s record.Segment) (*time.Duration, unit.Bytes) { return s.ClientCPUNS, s.ClientBytes })
	server := costOf(cleanCost, func(s record.Segment) (*time.Duration, unit.Bytes) { return s.ServerCPUNS, s.ServerBytes })
	out.Client, out.Server = single(client), single(server)
	if client > 0 {
		out.Total = single(client + server)
	}
	return out, true
}

// undisturbed is the quantile of a connection's segments that stands for its
// cost. Disturbances add to the cost of a segment, often a lot, and seldom take
// from it: on a busy machine the lower quartile repeats from run to run where mean
// and median do not.
const undisturbed = 0.25

// wallOf is the wall time per byte of all segments together, or of the least
// disturbed where all of them are.
func wallOf(segments []record.Segment, dirty bool) float64 {
	walls := make([]float64, len(segments))
	wall, bytes := 0.0, 0.0
	for i, s := range segments {
		walls[i] = float64(s.WallNS) / float64(s.Bytes)
		wall += float64(s.WallNS)
		bytes += float64(s.Bytes)
	}
	if dirty {
		return stats.Quantile(walls, undisturbed)
	}
	return wall / bytes
}

// costOf is the typical CPU time of a side per byte that it worked on, or per
// byte at the sink where that is unknown; 0 where a segment lacks it. A slow
// cipher moves less in a segment than the buffers on the way hold.
func costOf(segments []record.Segment, side func(record.Segment) (cpu *time.Duration, bytes unit.Bytes)) float64 {
	costs := make([]float64, len(segments))
	for i, segment := range segments {
		used, bytes := side(segment)
		if used == nil || *used <= 0 {
			return 0
		}
		if bytes <= 0 {
			bytes = segment.Bytes
		}
		costs[i] = float64(*used) / float64(bytes)
	}
	return stats.Quantile(costs, undisturbed)
}

// contention fills in how the connection shared the cores with others.
func (t *Transfer) contention(segments []record.Segment) {
	var wall, foreign, client, server float64
	for _, s := range segments {
		wall += float64(s.WallNS)
		foreign += float64(s.ForeignCPUNS)
		if s.ClientWaitNS != nil {
			client += float64(*s.ClientWaitNS)
		}
		if s.ServerWaitNS != nil {
			server += float64(*s.ServerWaitNS)
		}
	}
	t.Contended = foreign > maxForeign*wall
	t.ClientWait, t.ServerWait = min(1, client/wall), min(1, server/wall)
}
