package drive

import (
	"context"
	"errors"
	"math"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/unit"
	"sshpace/internal/measure/flow"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// Limits of how long the harness sleeps between two looks at the pipes. Waking
// up costs 10 to 40 us of CPU time on a virtual machine.
const (
	shortestNap = 50 * time.Microsecond
	longestNap  = 5 * time.Millisecond
)

// turn is a slice of some length of a cell.
type turn struct {
	bulk   alg.Suite
	d      record.Direction
	length time.Duration
}

// Slice lets the connection of a trial move data for about length, or a probe do
// its work. lost says why the connection came to its end, if it did.
func (p *Private) Slice(ctx context.Context, t record.Trial, length time.Duration) (s record.Slice, lost string, err error) {
	if err := p.prepare(); err != nil {
		return s, "", err
	}
	if t.Workload == record.Probe {
		s, err := p.probe(t.ID)
		return s, "", err
	}
	c := p.lines[t.ID]
	if c == nil {
		return s, "it is not open", nil
	}
	n, err := p.share(ctx, c, t, length)
	if err == nil {
		s, err = p.slice(ctx, c, t.Direction, n)
	}
	if errors.Is(err, context.Canceled) {
		return s, "", err
	}
	if err != nil {
		delete(p.lines, t.ID)
		lost = c.lost(err)
		c.close()
	}
	s.Trial = t.ID
	return s, lost, nil
}

// Sizes of the slices that find out what a connection costs, the first of which
// fills its buffers.
var calibration = []int64{128 << 10, 256 << 10, 256 << 10}

// sizes are what a slice may have, few and far apart, so that most cells have
// the same, and a cell has the same in another run: what a slice costs beside its
// bytes is then the same for all. A packet of OpenSSH has 32 KiB.
var sizes = []int64{128 << 10, 512 << 10, 2 << 20, 8 << 20, 32 << 20, 128 << 20}

// share is how many bytes a slice is to have: the largest size that costs neither
// side more than the length in CPU time, or the smallest. The first connection of
// a cell decides for all.
func (p *Private) share(ctx context.Context, c *connection, t record.Trial, length time.Duration) (int64, error) {
	key := turn{t.Want.Bulk(), t.Direction, length}
	if n, known := p.sizes[key]; known && c.warm[t.Direction] {
		return n, nil
	}
	best := math.MaxFloat64
	for _, n := range calibration {
		c.streams[t.Direction].perByte = 0 // looked at as often as can be
		s, err := p.slice(ctx, c, t.Direction, n)
		if err != nil {
			return 0, err
		}
		best = min(best, float64(max(*s.ClientCPUNS, *s.ServerCPUNS))/float64(n))
	}
	c.warm[t.Direction] = true
	if _, known := p.sizes[key]; !known {
		p.sizes[key] = sizes[0]
		for _, n := range sizes {
			if best*float64(n) <= float64(length) {
				p.sizes[key] = n
			}
		}
	}
	return p.sizes[key], nil
}

// slice moves exactly n bytes over one connection and returns what that took.
// It ends when all of them have arrived and both processes sleep again, so that
// the CPU time between the ends of two slices belongs to the bytes of one.
func (p *Private) slice(ctx context.Context, c *connection, d record.Direction, n int64) (record.Slice, error) {
	began, harness := time.Now(), proc.Self()
	used, steady, err := p.move(ctx, c, c.streams[d], n)
	if err != nil {
		return record.Slice{}, err
	}
	out := record.Slice{
		SteadyNS: steady.wall, SteadyBytes: unit.Bytes(steady.bytes),
		WallNS: time.Since(began), Bytes: unit.Bytes(n), HarnessCPUNS: proc.Self() - harness,
		ClientCPUNS: difference(c.used[0], used[0]), ServerCPUNS: difference(c.used[1], used[1]),
	}
	c.used = used
	return out, nil
}

// move feeds n bytes, takes them out at the other end, waits until nobody has
// work left, and returns the CPU times then. That the processes sleep shows in
// their clocks: they stand still while we drain the pipe, which takes long enough.
func (p *Private) move(ctx context.Context, c *connection, s *stream, n int64) (used [2]time.Duration, flat plateau, err error) {
	fed, got, began := int64(0), int64(0), time.Now()
	for since, looks := began, 0; ; looks++ {
		if fed < n {
			k, err := p.payload.Feed(s.in, n-fed)
			if err != nil {
				return used, flat, errEnded
			}
			fed += k
		}
		last := used
		if looks > 0 && fed == n {
			if last, err = c.read(); err != nil {
				return used, flat, err
			}
		}
		k, ended, err := flow.Drain(s.out, p.null, n-got)
		if err != nil || ended && got < n {
			return used, flat, errEnded
		}
		now := time.Now()
		if got += k; k > 0 {
			flat.see(now, got, n)
		}
		if got == n {
			if used, err = c.read(); err != nil || used == last {
				s.learn(now.Sub(began), n, looks)
				return used, flat, err
			}
		}
		if k > 0 {
			since = now
		} else if now.Sub(since) > stallLook {
			if err := c.alive(ctx, now.Sub(since), p.Connect); err != nil {
				return used, flat, err
			}
		}
		proc.Nap(s.nap(n-fed, n-got))
	}
}

// plateau is the part of a slice after the ramp-up: from the first look at which
// a quarter of it had arrived to the arrival of its last byte.
type plateau struct {
	from  time.Time
	at    int64 // bytes that had arrived then
	bytes int64
	wall  time.Duration
}

// see takes a look at which got of n bytes have arrived.
func (p *plateau) see(now time.Time, got, n int64) {
	switch {
	case got < n/4:
	case p.at == 0:
		p.from, p.at = now, got
	default:
		p.bytes, p.wall = got-p.at, now.Sub(p.from)
	}
}

// learn adapts to the stream's speed, so that seven times of ten everything has
// arrived at the first look.
func (s *stream) learn(wall time.Duration, n int64, looks int) {
	switch {
	case s.perByte == 0:
		s.perByte = float64(wall) / float64(n)
	case n > room:
	case looks == 1:
		s.perByte *= 0.97
	default:
		s.perByte *= 1.07
	}
}

// nap is how long nothing has to be done: until all that is left should have
// arrived, or a pipe is half full or empty.
func (s *stream) nap(unfed, missing int64) time.Duration {
	if unfed > 0 || missing > room {
		missing = room / 2
	}
	return min(max(time.Duration(s.perByte*float64(missing)), shortestNap), longestNap)
}

// stallLook is how long nothing may move before we look whether the client is
// still there.
const stallLook = 20 * time.Millisecond

// alive returns why a stream that stands still is not to be waited for.
func (c *connection) alive(ctx context.Context, still, limit time.Duration) error {
	select {
	case <-c.ended:
		return errEnded
	case <-ctx.Done():
		return context.Canceled
	default:
	}
	if still > limit {
		return errStalled
	}
	return nil
}
