//go:build linux

package drive

import (
	"cmp"
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/base/alg"
	"sshpace/internal/bench/flow"
	"sshpace/internal/bench/lab"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
)

// line is an open connection.
type line interface {
	// share returns the number of bytes for a slice of some length.
	share(ctx context.Context, s *sitting, t record.Trial, length time.Duration) (int64, error)
	// slice moves exactly n bytes; a long one also measures the rate during the transfer.
	slice(ctx context.Context, d record.Direction, n int64, long bool) (record.Slice, error)
	// end closes the connection and returns the number of rekeys.
	end() (rekeys int)
	// close releases a connection whose client has ended.
	close()
	// The methods that a connection has from its client: waiting for last words after an error,
	// ending it, and its outcome.
	linger(why error)
	Kill()
	finish(s *record.Sample, err error) (openssh.Negotiation, openssh.Failed)
}

// lose closes a connection that failed with err and returns the reason.
func lose(l line, err error) string {
	var s record.Sample
	l.linger(err)
	l.Kill()
	l.finish(&s, err)
	l.close()
	return cmp.Or(strings.TrimSpace(s.Detail), string(s.Outcome))
}

// sitting is the state that simultaneous connections share.
type sitting struct {
	lines map[int]line // by trial; two trials may share one
	warm  map[int]bool // trials whose calibration is over
	sizes map[sliceKey]int64
	mover *mover
}

// prepare makes everything that slices need.
func (s *sitting) prepare(r *Rig) error {
	if s.mover != nil {
		return nil
	}
	payload, err := flow.NewPayload(r.Data == "random")
	if err != nil {
		return err
	}
	null, err := unix.Open(os.DevNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		payload.Close()
		return err
	}
	s.mover = newMover(payload, null, r.Connect)
	s.lines, s.warm, s.sizes = map[int]line{}, map[int]bool{}, map[sliceKey]int64{}
	return nil
}

// opened is a connection whose login is over.
type opened struct {
	trials []record.Trial // the first has made it, others share it
	sample record.Sample
	line   line  // nil if it failed
	err    error // the lab is broken
}

// opening controls how connections are opened: how many at a time, when each is due, and what to do
// after each.
type opening struct {
	atOnce  int
	due     func(context.Context) bool
	enter   func(context.Context, []record.Trial) opened
	follows func(record.Sample) error
}

// open opens the connections of trials, and reports their samples.
func (s *sitting) open(ctx context.Context, r *Rig, trials []record.Trial, how opening, each func(record.Trial, record.Sample) error) (failed error) {
	if err := s.prepare(r); err != nil {
		return err
	}
	results := make(chan opened)
	for waiting, running := shared(trials), 0; ; running-- {
		for running < how.atOnce && len(waiting) > 0 && failed == nil && how.due(ctx) {
			group := waiting[0]
			waiting, running = waiting[1:], running+1
			go func() {
				o := how.enter(ctx, group)
				o.trials = group
				results <- o
			}()
		}
		if running == 0 {
			return failed
		}
		o := <-results
		if o.err == nil {
			o.err = s.keep(o, each)
		}
		failed = cmp.Or(failed, o.err, how.follows(o.sample))
	}
}

// shared groups trials by the connection that they share, in order.
func shared(trials []record.Trial) [][]record.Trial {
	var groups [][]record.Trial
	for _, t := range trials {
		if i := slices.IndexFunc(groups, func(g []record.Trial) bool { return g[0].ID == t.Shares }); i >= 0 {
			groups[i] = append(groups[i], t)
			continue
		}
		groups = append(groups, []record.Trial{t})
	}
	return groups
}

// keep keeps a connection and reports its sample for each of its trials.
func (s *sitting) keep(o opened, each func(record.Trial, record.Sample) error) error {
	if o.line != nil {
		for _, t := range o.trials {
			s.lines[t.ID] = o.line
		}
	}
	for _, t := range o.trials {
		if err := each(t, o.sample); err != nil {
			return err
		}
	}
	return nil
}

// Close ends the connections of trials, and returns how often those that did so renewed their keys.
func (s *sitting) Close(ids ...int) (rekeys map[int]int) {
	rekeys = map[int]int{}
	for _, id := range ids {
		l := s.lines[id]
		delete(s.lines, id)
		delete(s.warm, id)
		if l == nil || s.used(l) {
			continue
		}
		if n := l.end(); n > 0 {
			rekeys[id] = n
		}
	}
	return rekeys
}

// used reports whether a trial has this connection.
func (s *sitting) used(l line) bool {
	for _, other := range s.lines {
		if other == l {
			return true
		}
	}
	return false
}

// sliceKey is a length of slices of a cell in a direction.
type sliceKey struct {
	bulk   alg.Suite
	d      record.Direction
	length time.Duration
}

// Slice lets the connection of a trial move data for about length. lost is the reason if the
// connection ended. The error is a *lab.Pause where the slice is useless, although nothing is
// broken.
func (s *sitting) Slice(ctx context.Context, t record.Trial, length time.Duration) (out record.Slice, lost string, err error) {
	l := s.lines[t.ID]
	if l == nil {
		return out, "it is not open", nil
	}
	n, err := l.share(ctx, s, t, length)
	if err == nil {
		out, err = l.slice(ctx, t.Direction, n, length > longer)
	}
	if lab.Idle(err) {
		return out, "", err
	}
	if err != nil {
		for id, other := range s.lines {
			if other == l {
				delete(s.lines, id)
			}
		}
		lost = lose(l, err)
	}
	out.Trial = t.ID
	return out, lost, nil
}

// calibration lists the sizes of the slices that measure the cost of a connection, the first of
// which fills its buffers.
var calibration = []int64{128 << 10, 256 << 10, 256 << 10}

// packet is the unit of slices: OpenSSH sends as much at once. Sizes follow a cell's cost as
// closely as that: where they were powers of two, every other cell had slices of half or twice the
// size in the next run, and came out up to 4 % costlier for its client.
const packet = 32 << 10

// Slices shorter than brief differ in size from the others of their connection, longer ones measure
// throughput, and those from steady on the time in which each side has its own CPU.
const (
	brief  = time.Millisecond
	longer = 4 * time.Millisecond
	steady = settling + leastSteady
)

// leastLong is the smallest of these: 16 packets. With 4, as the slowest ciphers had them, both
// sides seldom work side by side: 3DES came out a quarter too slow. Short slices have at most as
// many bytes as the pipes keep, and brief ones a third of that: the cost of slices besides their
// bytes is the same between 64 KiB and that.
const (
	leastBrief = 2 * packet
	mostBrief  = mostShort / 3 / packet * packet
	leastShort = 3 * packet
	mostShort  = widePipe
	leastLong  = 512 << 10
	mostLong   = 128 << 20
)

// maxWallFactor is how many times longer than its CPU time a slice may take, as on a slow network.
const maxWallFactor = 40

// share returns the bytes of a slice: enough to cost the costlier side about length in CPU time.
// The first connection of a cell decides for all.
func (c *connection) share(ctx context.Context, s *sitting, t record.Trial, length time.Duration) (int64, error) {
	key := sliceKey{t.Want.Bulk(), t.Direction, length}
	if n, known := s.sizes[key]; known && s.warm[t.ID] {
		return n, nil
	}
	perByte := math.MaxFloat64
	for _, n := range calibration {
		out, err := c.slice(ctx, t.Direction, n, false)
		if err != nil {
			return 0, err
		}
		perByte = min(perByte, costliest(out)/float64(n))
	}
	s.warm[t.ID] = true
	if _, known := s.sizes[key]; !known {
		s.sizes[key] = sizeFor(length, perByte)
	}
	return s.sizes[key], nil
}

// sizeFor returns the bytes that take about length at perByte ns per byte. Slices for throughput
// have as many as they need, in steps of leastLong.
func sizeFor(length time.Duration, perByte float64) int64 {
	bytes := float64(length) / perByte
	switch {
	case length > steady:
		return bounded(leastLong*math.Ceil(bytes/leastLong), leastLong, mostLong)
	case length > longer:
		return bounded(packet*math.Round(bytes/packet), leastLong, mostLong)
	case length < brief:
		return bounded(packet*math.Round(bytes/packet), leastBrief, mostBrief)
	}
	return bounded(packet*math.Round(bytes/packet), leastShort, mostShort)
}

func bounded(bytes float64, least, most int64) int64 {
	return int64(math.Max(float64(least), math.Min(bytes, float64(most))))
}

// costliest returns the CPU time of the side that needed more, in ns, or a substitute where the
// slice took very long.
func costliest(s record.Slice) float64 {
	cost := float64(s.WallNS) / maxWallFactor
	for _, cpu := range []*time.Duration{s.ClientCPUNS, s.ServerCPUNS} {
		if cpu != nil {
			cost = max(cost, float64(*cpu))
		}
	}
	return cost
}
