package model

import (
	"math"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/record"
)

// quantity is what a slice measures per byte.
type quantity int

const (
	wall quantity = iota
	client
	server
	total // client and server together, or the client alone where the server is unknown
	quantities
)

// windowSlices is how many slices in a row share one estimate of the machine's
// level: one or two seconds, in which a level is known to half a percent.
const windowSlices = 400

// uneven is the part of the slowdown that other guests cause, by which it differs
// between cells from one run to the next (standard deviation), beside what slices show of it.
// Without it, intervals of simulated runs are a little too narrow.
const uneven = 0.02

// shared is the same of other programs on this machine, for each core that they keep
// busy. Of ten runs of one machine with two threads of a core, three had a busy loop
// beside them: CBC cost the server 7 % less there, beside other ciphers.
const shared = 0.025

// Sittings are connections that moved data in slices, in turn.
type Sittings struct {
	Connections []Transfer
	Probe       Probe // its CPU time
	Wall        Probe // its time on the wall
	// Excess is what a slice costs besides its bytes: waking up, filling buffers.
	// It is taken out of every figure.
	Excess Excess
	Slices int // of connections
	// Foreign is how many cores other programs of this machine kept busy; 0 if unknown.
	Foreign float64

	apart [quantities]float64 // standard error of cells beyond that of their connections
}

// numbered numbers connections by a name.
func numbered(connections []*connection, name func(alg.Suite) string) []int {
	numbers := map[string]int{}
	out := make([]int, len(connections))
	for i, c := range connections {
		n := name(c.trial.Cell().Suite)
		if _, seen := numbers[n]; !seen {
			numbers[n] = len(numbers)
		}
		out[i] = numbers[n]
	}
	return out
}

// reading is one slice of one connection.
type reading struct {
	window int
	bytes  float64
	long   bool                // several times as long as others, but too short to have a steady part
	steady bool                // both sides worked side by side: nothing is to be taken off
	ns     [quantities]float64 // 0: unknown
}

// connection is what one connection showed, in the order of time.
type connection struct {
	trial    record.Trial
	stretch  int
	readings []reading
	parts    []reading // steady ones, which show throughput
	timed    bool      // some connection has such parts
}

// of are the readings of a quantity: wall time per byte is that of a long
// transfer, which short slices do not show.
func (c *connection) of(q quantity) []reading {
	if q == wall && c.timed {
		return c.parts
	}
	return c.readings
}

// SittingsOf summarises the slices of a file, each connection by itself and
// freed of what all connections had in common while it was measured.
func SittingsOf(trials map[int]record.Trial, batches []record.Slices) Sittings {
	connections, probe, wallProbe := split(trials, batches)
	var out Sittings
	out.Probe, out.Wall = probeOf(probe), probeOf(wallProbe)
	out.Excess, out.Foreign = excessOf(connections), foreignOf(batches)
	var estimates, slowed [quantities][]stats.Estimate
	for q := range quantities {
		estimates[q], slowed[q], out.apart[q] = locate(connections, q, &out.Excess)
		out.Excess.addError(q, connections, estimates[q])
	}
	add(estimates)
	prolong(connections, estimates[wall])
	relate(estimates)
	for q := range quantities {
		out.apart[q] = math.Hypot(out.apart[q], math.Hypot(uneven*out.Probe.Slowed(), shared*min(1, out.Foreign)))
	}
	few := fewParts(connections)
	for i, c := range connections {
		t := Transfer{Trial: c.trial, Cell: c.trial.Cell(), Stretch: c.stretch}
		t.apart, t.fewParts, t.foreign = out.apart, few[i], out.Foreign
		t.Wall, t.Client, t.Server, t.Total = estimates[wall][i], estimates[client][i], estimates[server][i], estimates[total][i]
		for q := range quantities {
			t.slowed[q] = slowed[q][i]
		}
		out.Slices += len(c.readings)
		if t.Wall.N > 0 || t.Client.N > 0 {
			out.Connections = append(out.Connections, t)
		}
	}
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
	if len(cores) == 0 {
		return 0
	}
	return stats.Median(cores)
}

// split sorts slices by connection, in the order of their first one.
func split(trials map[int]record.Trial, batches []record.Slices) (connections []*connection, probe, wallProbe [][]float64) {
	at := map[int]*connection{}
	window, inWindow, sitting := 0, 0, 0
	for _, batch := range batches {
		if batch.Sitting != sitting || inWindow >= windowSlices {
			sitting, inWindow, window = batch.Sitting, 0, window+1
		}
		for _, s := range batch.Slices {
			t, known := trials[s.Trial]
			if !known || s.Bytes <= 0 || s.WallNS <= 0 {
				continue
			}
			if t.Workload == record.Probe {
				if s.ClientCPUNS != nil && *s.ClientCPUNS > 0 {
					probe = turn(probe, window, float64(*s.ClientCPUNS)/float64(s.Bytes))
					wallProbe = turn(wallProbe, window, float64(s.WallNS)/float64(s.Bytes))
				}
				continue
			}
			c := at[s.Trial]
			if c == nil {
				c = &connection{trial: t, stretch: batch.Sitting}
				at[s.Trial] = c
				connections = append(connections, c)
			}
			c.add(s, window)
			inWindow++
		}
	}
	timed := slices.ContainsFunc(connections, func(c *connection) bool { return len(c.parts) > 0 })
	for _, c := range connections {
		c.timed = timed
	}
	return connections, probe, wallProbe
}

// add sorts the readings of a slice. The steady part of one is about throughput alone: both
// sides on a CPU each cost some ciphers more than one after the other, others less.
func (c *connection) add(s record.Slice, window int) {
	r := readingOf(s, window)
	if s.Steady == nil || s.Steady.Bytes <= 0 || s.Steady.WallNS <= 0 {
		c.readings = append(c.readings, r)
		return
	}
	r.bytes, r.steady = float64(s.Steady.Bytes), true
	r.read(s.Steady.WallNS, s.Steady.ClientCPUNS, s.Steady.ServerCPUNS)
	c.parts = append(c.parts, r)
}

// turn adds a figure to those of its window.
func turn(windows [][]float64, window int, figure float64) [][]float64 {
	for len(windows) <= window {
		windows = append(windows, nil)
	}
	windows[window] = append(windows[window], figure)
	return windows
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
		r.ns[total] = r.ns[client]
	}
	if ofServer != nil {
		r.ns[server] = float64(*ofServer)
		r.ns[total] += r.ns[server]
	}
}

// locate gives the location of one quantity of every connection, in logarithms of
// ns per byte. N is 0 where the quantity is unknown in some slice. slowed is what other
// guests added to CPU times, and common what connections of a cipher or MAC have in common.
func locate(connections []*connection, q quantity, excess *Excess) (out, slowed []stats.Estimate, common float64) {
	samples := make([]sample, len(connections))
	windows := 0
	for i, c := range connections {
		for _, r := range c.of(q) {
			if r.ns[q] <= 0 {
				samples[i] = sample{}
				break
			}
			samples[i].logs = append(samples[i].logs, excess.log(r, q))
			samples[i].windows = append(samples[i].windows, r.window)
			windows = max(windows, r.window+1)
		}
	}
	if q == wall {
		limitTails(connections, samples)
		slowed = make([]stats.Estimate, len(connections))
	}
	for i := range samples {
		samples[i].locate(lowQuantile, highQuantile)
	}
	if q == wall { // which is relative to CPU time: what disturbs a slice disturbs both
		free(samples, windows)
	} else {
		slowed = calm(connections, samples)
	}
	pool(samples)
	factor, common := minInflation, 0.0
	if all, ok := courses(samples, windows); ok {
		factor = inflation(all)
		common = apart(all, numbered(connections, func(s alg.Suite) string { return s.Cipher }), factor)
		common += apart(all, numbered(connections, func(s alg.Suite) string { return alg.Primitive(s.MAC) }), factor)
	}
	out = make([]stats.Estimate, len(connections))
	for i, s := range samples {
		out[i] = stats.Estimate{Log: s.Mean, Err: s.err * math.Sqrt(factor), N: len(s.logs)}
	}
	return out, slowed, math.Sqrt(common)
}

// log is the logarithm of ns per byte without the excess. Wall time is relative to
// the CPU time that the same slice took of the costlier side, if that is known:
// what slows a slice slows both.
func (e *Excess) log(r reading, q quantity) float64 {
	switch {
	case r.steady && r.ns[client] > 0:
		return math.Log(r.ns[wall] / math.Max(r.ns[client], r.ns[server]))
	case r.steady:
		return math.Log(r.ns[wall] / r.bytes)
	case q == wall && r.ns[client] > 0:
		return math.Log(e.free(r, q) / e.costlier(r))
	}
	return math.Log(e.free(r, q) / r.bytes)
}

// free is a quantity without the excess. A slice whose excess would be most of it
// was cut short: it says little.
func (e *Excess) free(r reading, q quantity) float64 {
	return math.Max(r.ns[q]-e[q].NS, r.ns[q]/4)
}

// costlier is the CPU time of the side that needed more.
func (e *Excess) costlier(r reading) float64 {
	return math.Max(e.free(r, client), e.free(r, server))
}

// add makes the costs of both sides add up to what they took together, which is known
// better: what disturbs a slice seldom disturbs both.
func add(estimates [quantities][]stats.Estimate) {
	for i, both := range estimates[total] {
		c, s := &estimates[client][i], &estimates[server][i]
		if both.N == 0 || c.N == 0 || s.N == 0 {
			continue
		}
		off := both.Log - math.Log(math.Exp(c.Log)+math.Exp(s.Log))
		c.Log, s.Log = c.Log+off, s.Log+off
	}
}

// Probe is what a fixed piece of work took that takes its turn like a
// connection: ns per byte as it usually was, and at its best.
type Probe struct {
	Usual, Best float64
	N           int
	Course      []float64 // usual ns per byte in each window of time
}

// bestQuantile is the part of the probe's turns that count as undisturbed.
const bestQuantile = 0.05

func probeOf(windows [][]float64) Probe {
	costs := slices.Concat(windows...)
	p := Probe{Usual: stats.Median(costs), Best: stats.Quantile(costs, bestQuantile), N: len(costs)}
	for _, w := range windows {
		if len(w) > 0 {
			p.Course = append(p.Course, stats.Median(w))
		}
	}
	return p
}

// Slowed is how much slower the machine usually was than at its best, in
// logarithms; 0 where there was no probe.
func (p Probe) Slowed() float64 {
	if p.N == 0 || p.Best <= 0 {
		return 0
	}
	return math.Log(p.Usual / p.Best)
}

// Excess is what a slice takes besides its bytes, for every quantity.
type Excess [quantities]struct {
	NS    float64 // per slice
	Err   float64 // standard error of NS
	Share float64 // of what a typical slice takes
}

// Shares of what a typical slice costs client and server.
func (e Excess) Shares() (ofClient, ofServer float64) { return e[client].Share, e[server].Share }

// lengthFactor is by how much the two lengths that slices of one connection have by turns
// differ at least, so that the excess shows.
const lengthFactor = 1.25

// excessOf compares short and long slices of the same connections. It is zero
// where all have one length.
func excessOf(connections []*connection) Excess {
	var out Excess
	for q := range quantities {
		var excess, weights, typical []float64
		for _, c := range connections {
			if e, ns, weight, ok := c.excess(q); ok {
				excess, weights, typical = append(excess, e), append(weights, weight), append(typical, ns)
			}
		}
		if ns := weightedMedian(excess, weights); ns > 0 {
			out[q].NS, out[q].Share = ns, ns/stats.Median(typical)
			out[q].Err = medianError(excess, weights, ns)
		}
	}
	return out
}

// addError adds the error of the excess to estimates: all slices have the same, but
// it weighs more in those that take less time than others.
func (e *Excess) addError(q quantity, connections []*connection, estimates []stats.Estimate) {
	if e[q].Err == 0 {
		return
	}
	weights := make([]float64, len(connections)) // of the excess in a connection's cost
	for i, c := range connections {
		if estimates[i].N > 0 {
			var per []float64
			for _, r := range c.of(q) {
				per = append(per, 1/r.ns[q])
			}
			weights[i] = stats.Median(per)
		}
	}
	common := stats.Median(weights)
	for i := range estimates {
		if estimates[i].N > 0 {
			estimates[i].Err = math.Hypot(estimates[i].Err, e[q].Err*(weights[i]-common))
		}
	}
}

// border is the size that parts brief slices from usual ones; ok is false where all have one.
func border(readings []reading) (size float64, ok bool) {
	var sizes []float64
	for _, r := range readings {
		if !r.long {
			sizes = append(sizes, r.bytes)
		}
	}
	if len(sizes) == 0 {
		return 0, false
	}
	least, most := slices.Min(sizes), slices.Max(sizes)
	return math.Sqrt(least * most), most > lengthFactor*least
}

// excess solves ns = excess + bytes·cost for slices of two lengths. typical is what a slice
// takes on the mean that is not for throughput, and weight the inverse of the variance of ns but for a factor.
func (c *connection) excess(q quantity) (ns, typical, weight float64, ok bool) {
	readings := c.of(q)
	limit, ok := border(readings)
	if !ok {
		return 0, 0, 0, false
	}
	var short, long lengths
	var usual []float64
	for _, r := range readings {
		if r.ns[q] <= 0 {
			return 0, 0, 0, false
		}
		if !r.long {
			usual = append(usual, r.ns[q])
		}
		if r.bytes > limit {
			long.add(r, q)
		} else {
			short.add(r, q)
		}
	}
	if len(short.logs) < fewSlices {
		return 0, 0, 0, false
	}
	s, l := short.cost(), long.cost()
	between := short.inverse() - long.inverse()
	ns = (s - l) / between
	variance := (s*s/float64(len(short.logs)) + l*l/float64(len(long.logs))) / (between * between)
	return ns, stats.Mean(usual), 1 / variance, true
}

// lengths are the slices of about one length of a connection.
type lengths struct{ logs, inverses []float64 }

func (l *lengths) add(r reading, q quantity) {
	l.logs = append(l.logs, math.Log(r.ns[q]/r.bytes))
	l.inverses = append(l.inverses, 1/r.bytes)
}

// cost is that of the calm slices in ns per byte, as connections are compared.
func (l *lengths) cost() float64 {
	s := sample{logs: l.logs}
	s.locate(0, calmQuantile)
	return math.Exp(s.Mean)
}

func (l *lengths) inverse() float64 { return stats.Mean(l.inverses) }
