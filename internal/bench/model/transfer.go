// Package model turns samples into the numbers of rankings: costs per byte of one connection,
// without the effect of other work on the machine, and an additive model of cost that predicts
// cells that were not measured. The planner uses it while measuring, the ranking afterwards. It
// does no I/O.
package model

import (
	"math"
	"slices"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// quantity is one of the measured quantities of a slice per byte.
type quantity int

const (
	wall quantity = iota
	client
	server
	quantities
)

// windowSlices is how many consecutive slices are a window of time: one or two seconds.
const windowSlices = 400

// reading is one slice of one connection.
type reading struct {
	window int
	bytes  float64
	long   bool                // several times as long as others, but too short to have a steady part
	ns     [quantities]float64 // 0: unknown
}

// Transfer holds the figures of one connection, or of one copy.
type Transfer struct {
	Trial record.Trial

	readings []reading // in the order of time
	steady   []reading // parts of long slices in which both sides worked side by side, as in a long transfer
	// of has ns per byte of client and server, and the ratio of wall time to the CPU time of the
	// costlier side, which is ns per byte where that is unknown. N is 0 for an unknown figure.
	of [quantities]located
}

// Cost returns the cost of both sides per byte, or of the client alone where the server is unknown.
// N is 0 where it could not be measured.
func (t *Transfer) Cost() stats.Estimate {
	out := t.of[client].Estimate
	out.Log = t.sides(sum)
	return out
}

// Wall returns the time of a long transfer per byte.
func (t *Transfer) Wall() stats.Estimate {
	e := t.of[wall].Estimate
	if t.of[client].N > 0 && e.N > 0 {
		e.Log += t.sides(math.Max)
	}
	return e
}

// sides combines both sides' logarithms, for example into that of the sum; it returns the client's
// where the server is unknown.
func (t *Transfer) sides(of func(x, y float64) float64) float64 {
	if t.of[server].N == 0 {
		return t.of[client].Log
	}
	return of(t.of[client].Log, t.of[server].Log)
}

// Beside returns how much more both sides cost on average over all slices than is shown, as a
// logarithm: the effect of other guests on this computation.
func (t *Transfer) Beside() float64 {
	mean := t.of[client].mean
	if t.of[server].N > 0 {
		mean = sum(mean, t.of[server].mean)
	}
	return mean - t.sides(sum)
}

// sum returns the logarithm of the sum of two logarithms' values.
func sum(a, b float64) float64 { return math.Log(math.Exp(a) + math.Exp(b)) }

// Sittings are connections that moved data in slices, in turn, or copies.
type Sittings struct {
	Connections []*Transfer
	Slices      int // of connections
	Slowed      Slowed
}

// Slowed describes other work of the machine during a run.
type Slowed struct {
	Known   bool    // whether slices show the work of other guests
	Cost    float64 // logarithm of the factor on CPU time, against the machine's best moments
	Foreign float64 // cores that other programs of this machine kept busy; 0 if unknown
}

// muchForeign is the number of cores from which on other programs are mentioned.
const muchForeign = 0.2

// Busy reports whether other programs used a notable part of this machine.
func (s Slowed) Busy() bool { return s.Foreign > muchForeign }

// Kept returns the share of a core that other programs kept busy during slices.
func (s Slowed) Kept() float64 { return min(1, s.Foreign) }

// Percent returns how much more CPU time the same work took.
func (s Slowed) Percent() float64 { return 100 * math.Expm1(s.Cost) }

// SittingsOf summarizes the slices of a file, each connection by itself.
func SittingsOf(trials map[int]record.Trial, batches []record.Slices) Sittings {
	connections := split(trials, batches)
	excess := excessOf(connections)
	locate(connections, client, excess)
	locate(connections, server, excess)
	var out Sittings
	out.Slowed.Foreign = foreignOf(batches)
	out.Slowed.Cost, out.Slowed.Known = slowdown(connections)
	sustain(connections, client)
	sustain(connections, server)
	steady := slices.ContainsFunc(connections, func(t *Transfer) bool { return len(t.steady) > 0 })
	for _, t := range connections {
		t.of[wall].Estimate = t.ratio(steady, excess)
		out.Slices += len(t.readings)
	}
	out.Connections = slices.DeleteFunc(connections, func(t *Transfer) bool { return t.of[wall].N == 0 && t.of[client].N == 0 })
	return out
}

// foreignOf returns how many cores other programs usually kept busy during slices: logins beside
// the first slices are ours.
func foreignOf(batches []record.Slices) float64 {
	var cores []float64
	for _, b := range batches {
		if b.ForeignCPUNS != nil && b.SpanNS > 0 {
			cores = append(cores, float64(*b.ForeignCPUNS)/float64(b.SpanNS))
		}
	}
	return stats.Median(cores)
}

// split sorts slices by connection, in the order of their first one.
func split(trials map[int]record.Trial, batches []record.Slices) (connections []*Transfer) {
	at := map[int]*Transfer{}
	window, inWindow, sitting := 0, 0, 0
	for _, batch := range batches {
		if batch.Sitting != sitting || inWindow >= windowSlices {
			sitting, inWindow, window = batch.Sitting, 0, window+1
		}
		for _, s := range batch.Slices {
			t := trials[s.Trial]
			if t.Workload != record.Sitting || s.Bytes <= 0 || s.WallNS <= 0 {
				continue
			}
			c := at[s.Trial]
			if c == nil {
				c = &Transfer{Trial: t}
				at[s.Trial] = c
				connections = append(connections, c)
			}
			c.add(s, window)
			inWindow++
		}
	}
	return connections
}

// add sorts the readings of a slice. Its steady part is about throughput alone: on two CPUs side by
// side some ciphers cost more than one after the other, others less.
func (t *Transfer) add(s record.Slice, window int) {
	steady := s.Steady
	if steady == nil || steady.Bytes <= 0 || steady.WallNS <= 0 {
		t.readings = append(t.readings, readingOf(s, window))
		return
	}
	s.Bytes, s.WallNS, s.ClientCPUNS, s.ServerCPUNS = steady.Bytes, steady.WallNS, steady.ClientCPUNS, steady.ServerCPUNS
	t.steady = append(t.steady, readingOf(s, window))
}

func readingOf(s record.Slice, window int) reading {
	r := reading{window: window, bytes: float64(s.Bytes), long: s.Long, ns: [quantities]float64{wall: float64(s.WallNS)}}
	if s.ClientCPUNS != nil {
		r.ns[client] = float64(*s.ClientCPUNS)
	}
	if s.ServerCPUNS != nil {
		r.ns[server] = float64(*s.ServerCPUNS)
	}
	return r
}
