//go:build linux

package drive

import (
	"context"
	"fmt"
	"time"

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

// slice moves exactly n bytes over one connection and returns what that took.
// It ends when all of them have arrived and both processes sleep again, so that
// the CPU time between the ends of two slices belongs to the bytes of one.
func (c *connection) slice(ctx context.Context, d record.Direction, n int64, long bool) (record.Slice, error) {
	began, harness, s := time.Now(), proc.Self(), c.streams[d]
	room := c.mover.widen(s)
	defer c.mover.narrow(s)
	every := n
	if long {
		every = n / looksOnTheWay
	}
	if n > room {
		every = min(every, room/2)
	}
	if err := c.move(ctx, s, n, every); err != nil {
		return record.Slice{}, err
	}
	used, err := c.asleep()
	if err != nil {
		return record.Slice{}, err
	}
	out := record.Slice{
		WallNS: time.Since(began), Bytes: unit.Bytes(n), HarnessCPUNS: proc.Self() - harness,
		ClientCPUNS: difference(c.used[0], used[0]), ServerCPUNS: difference(c.used[1], used[1]),
	}
	c.used = used
	return out, c.mover.pause()
}

// move feeds n bytes, takes them out at the other end, and waits until nobody has
// work left. It looks whenever about so many bytes should have arrived.
func (c *connection) move(ctx context.Context, s *stream, n, every int64) error {
	in, out := flow.Descriptor(s.in), flow.Descriptor(s.out)
	fed, got, began := int64(0), int64(0), time.Now()
	for since, looks := began, 0; ; looks++ {
		if fed < n {
			k, err := c.mover.payload.Feed(in, n-fed)
			if err != nil {
				return errEnded
			}
			fed += k
		}
		var k int64
		if looks > 0 { // nothing has arrived before
			var ended bool
			var err error
			if k, ended, err = flow.Drain(out, c.mover.null, n-got); err != nil || ended && got < n {
				return errEnded
			}
		}
		now := time.Now()
		if got += k; got == n {
			if still, err := c.standsStill(); err != nil || still {
				if every == n {
					s.learn(now.Sub(began), n, looks)
				}
				return err
			}
		}
		if k > 0 {
			since = now
		} else if now.Sub(since) > stallLook {
			if err := c.alive(ctx, now.Sub(since), c.mover.limit); err != nil {
				return err
			}
		}
		perByte := s.perByte
		if every < n && got > 0 {
			perByte = float64(now.Sub(began)) / float64(got)
		}
		c.mover.nap(s.nap(perByte, min(n-got, every)))
	}
}

// standsStill reports whether neither process works, after everything has arrived: their
// clocks stand still while whoever waits for our CPU may have it. To read the clock of a
// process that runs interrupts its CPU, and costs fifteen times as much.
func (c *connection) standsStill() (bool, error) {
	before, err := c.read()
	if err != nil {
		return false, err
	}
	proc.Yield()
	after, err := c.read()
	return before == after, err
}

// looksOnTheWay is how often a long slice is looked at before its end, at least.
const looksOnTheWay = 6

// learn adapts to the stream's speed, so that once in three times everything has
// arrived at the first look: where a part has, the next nap is as long as the rest needs. To
// come late takes time from all other slices, more than a look costs.
func (s *stream) learn(wall time.Duration, n int64, looks int) {
	s.slices++
	switch {
	case s.slices <= len(calibration):
		s.perByte = float64(wall) / float64(n)
	case looks == 1:
		s.perByte *= 0.96
	default:
		s.perByte *= 1.02
	}
}

// nap is how long nothing has to be done: until so many bytes should have arrived.
func (s *stream) nap(perByte float64, missing int64) time.Duration {
	if s.slices < len(calibration) {
		return shortestNap
	}
	return min(max(time.Duration(perByte*float64(missing)), shortestNap), longestNap)
}

// Pause says that this process or the machine stood still during a slice: the user
// stopped it (Ctrl-Z), or the machine was suspended. What the slice shows is of no use.
type Pause struct{ For time.Duration }

func (p *Pause) Error() string { return fmt.Sprintf("stood still for %v", p.For) }

// Paused is how long.
func (p *Pause) Paused() time.Duration { return p.For }

// stallLook is how long nothing may move before we look whether the client is
// still there.
const stallLook = 20 * time.Millisecond

// alive returns why a stream that stands still is not to be waited for.
func (c *client) alive(ctx context.Context, still, limit time.Duration) error {
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
