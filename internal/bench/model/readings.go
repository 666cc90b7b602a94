package model

import (
	"slices"
	"time"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// quantity is what a slice measures per byte.
type quantity int

const (
	wall quantity = iota
	client
	server
	quantities
)

// windowSlices is how many slices in a row are a window of time: one or two seconds.
const windowSlices = 400

// reading is one slice of one connection.
type reading struct {
	window int
	bytes  float64
	long   bool                // several times as long as others, but too short to have a steady part
	ns     [quantities]float64 // 0: unknown
}

// connection is what one connection showed, in the order of time.
type connection struct {
	trial    record.Trial
	readings []reading
	steady   []reading // parts of long slices in which both sides worked side by side, as in a long transfer
}

// Sittings are connections that moved data in slices, in turn, or copies.
type Sittings struct {
	Connections []Transfer
	Excess      Excess // taken out of every figure
	Slices      int    // of connections
	// Foreign is how many cores other programs of this machine kept busy; 0 if unknown.
	Foreign float64
	// Slowed is by how much other guests slowed both sides, as a logarithm, compared with the
	// machine's best moments. N is 0 where slices do not show it.
	Slowed stats.Estimate

	copied bool
}

// SittingsOf summarizes the slices of a file, each connection by itself.
func SittingsOf(trials map[int]record.Trial, batches []record.Slices) Sittings {
	connections := split(trials, batches)
	out := Sittings{Excess: excessOf(connections), Foreign: foreignOf(batches)}
	out.Connections = make([]Transfer, len(connections))
	steady := slices.ContainsFunc(connections, func(c *connection) bool { return len(c.steady) > 0 })
	var sides []located
	for _, q := range []quantity{client, server} {
		all := locate(connections, q, out.Excess)
		sides = append(sides, all...)
		sustain(connections, all)
		for i := range all {
			out.Connections[i].of[q] = all[i]
		}
	}
	out.Slowed = slowdown(sides)
	for i, c := range connections {
		t := &out.Connections[i]
		t.Trial, t.Cell = c.trial, c.trial.Cell()
		t.of[wall].Estimate = c.ratio(steady, t.of[client].N > 0, out.Excess)
		out.Slices += len(c.readings)
	}
	out.Connections = slices.DeleteFunc(out.Connections, func(t Transfer) bool { return t.of[wall].N == 0 && t.of[client].N == 0 })
	return out
}

// foreignOf is how many cores other programs kept busy while slices were measured, usually:
// logins that go on beside the first slices are ours.
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
func split(trials map[int]record.Trial, batches []record.Slices) (connections []*connection) {
	at := map[int]*connection{}
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
				c = &connection{trial: t}
				at[s.Trial] = c
				connections = append(connections, c)
			}
			c.add(s, window)
			inWindow++
		}
	}
	return connections
}

// add sorts the readings of a slice. The steady part of one is about throughput alone: both
// sides on a CPU each cost some ciphers more than one after the other, others less.
func (c *connection) add(s record.Slice, window int) {
	r := readingOf(s, window)
	if s.Steady == nil || s.Steady.Bytes <= 0 || s.Steady.WallNS <= 0 {
		c.readings = append(c.readings, r)
		return
	}
	r.bytes = float64(s.Steady.Bytes)
	r.read(s.Steady.WallNS, s.Steady.ClientCPUNS, s.Steady.ServerCPUNS)
	c.steady = append(c.steady, r)
}

func readingOf(s record.Slice, window int) reading {
	r := reading{window: window, bytes: float64(s.Bytes), long: s.Long}
	r.read(s.WallNS, s.ClientCPUNS, s.ServerCPUNS)
	return r
}

func (r *reading) read(took time.Duration, ofClient, ofServer *time.Duration) {
	r.ns = [quantities]float64{wall: float64(took)}
	if ofClient != nil {
		r.ns[client] = float64(*ofClient)
	}
	if ofServer != nil {
		r.ns[server] = float64(*ofServer)
	}
}
