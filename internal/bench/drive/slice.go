//go:build linux

package drive

import (
	"context"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/flow"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// Limits of the harness's sleep between two looks at the pipes. Waking up costs 10 to 40 us of CPU
// time on a virtual machine.
const (
	shortestNap = 50 * time.Microsecond
	longestNap  = 5 * time.Millisecond
)

// slice moves exactly n bytes over one connection and returns time and costs. It ends when all of
// them have arrived and both processes sleep again, so that the CPU time between the ends of two
// slices belongs to the bytes of one.
func (c *connection) slice(ctx context.Context, d record.Direction, n int64, long bool) (record.Slice, error) {
	began, harness, s := c.mover.begin(), proc.Self(), c.streams[d]
	room := c.mover.widen(s)
	defer c.mover.narrow(s)
	every := n
	if long {
		every = n / looksOnTheWay
	}
	if n > room {
		every = min(every, room/looksPerRoom)
	}
	w := window{long: long}
	if err := c.move(ctx, s, n, every, &w); err != nil {
		return record.Slice{}, err
	}
	used, err := c.asleep()
	if err != nil {
		return record.Slice{}, err
	}
	out := record.Slice{
		WallNS: time.Since(began), Bytes: unit.Bytes(n), HarnessCPUNS: proc.Self() - harness,
		ClientCPUNS: difference(c.used[0], used[0]), ServerCPUNS: difference(c.used[1], used[1]), Steady: w.steady(),
	}
	c.used = used
	return out, c.mover.pause()
}

// move writes n bytes, reads them at the other end, and waits until nobody has work left. It looks
// after every bytes should have arrived, and notes when both sides worked side by side.
func (c *connection) move(ctx context.Context, s *stream, n, every int64, w *window) error {
	in, out := flow.Descriptor(s.in), flow.Descriptor(s.out)
	fed, got, began := int64(0), int64(0), time.Now()
	for since, looks := began, 0; ; looks++ {
		if fed < n {
			k, err := c.mover.payload.Feed(in, n-fed)
			if err != nil {
				return openssh.ErrEnded
			}
			fed += k
		}
		var k int64
		if looks > 0 { // nothing has arrived before
			var ended bool
			var err error
			if k, ended, err = flow.Drain(out, c.mover.null, n-got); err != nil || ended && got < n {
				return openssh.ErrEnded
			}
		}
		now := time.Now()
		got += k
		if w.opens(now.Sub(began), fed == n) {
			if err := c.note(w, now.Sub(began), got); err != nil {
				return err
			}
		}
		if got == n {
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

// settling is the time after which each side of a transfer has its own CPU: the scheduler wakes
// them up on one, and moves one away at some tick of its clock. leastSteady is the least remaining
// time of a slice that measures speed.
const (
	settling    = 32 * time.Millisecond
	leastSteady = 16 * time.Millisecond
)

// window is the steady part of a long slice, between two looks.
type window struct {
	long  bool
	notes []note
}

// note is the progress of a slice: bytes that have arrived, CPU time of both sides.
type note struct {
	at    time.Duration
	bytes int64
	used  [2]time.Duration
}

// opens reports whether a look is the first after both sides have settled, or the one that wrote
// the last byte.
func (w *window) opens(at time.Duration, fed bool) bool {
	switch len(w.notes) {
	case 0:
		return w.long && !fed && at >= settling
	case 1:
		return fed
	}
	return false
}

func (c *connection) note(w *window, at time.Duration, arrived int64) error {
	used, err := c.read()
	w.notes = append(w.notes, note{at, arrived, used})
	return err
}

// steady returns the steady part; nil where a slice was too short for it.
func (w *window) steady() *record.Steady {
	if len(w.notes) < 2 || w.notes[1].at-w.notes[0].at < leastSteady {
		return nil
	}
	from, to := w.notes[0], w.notes[1]
	return &record.Steady{
		WallNS: to.at - from.at, Bytes: unit.Bytes(to.bytes - from.bytes),
		ClientCPUNS: difference(from.used[0], to.used[0]), ServerCPUNS: difference(from.used[1], to.used[1]),
	}
}

// standsStill reports whether neither process works, after everything has arrived: their clocks
// stand still although they may have our CPU. Reading the clock of a running process interrupts its
// CPU, and costs fifteen times as much.
func (c *connection) standsStill() (bool, error) {
	before, err := c.read()
	if err != nil {
		return false, err
	}
	proc.Yield()
	after, err := c.read()
	return before == after, err
}

// A long slice is polled at least looksOnTheWay times, and looksPerRoom times per pipe buffer of
// data: with half as many looks the pipes of AES-GCM were found empty or full at half of them.
const (
	looksOnTheWay = 6
	looksPerRoom  = 4
)

// learn adapts to the stream's speed, so that in one of three slices everything has arrived at the
// first look: if only a part has, the next nap is as long as the rest needs. A late look takes time
// from all other slices, more than a look costs.
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

// nap returns the time until missing bytes should have arrived.
func (s *stream) nap(perByte float64, missing int64) time.Duration {
	if s.slices < len(calibration) {
		return shortestNap
	}
	return min(max(time.Duration(perByte*float64(missing)), shortestNap), longestNap)
}

// stallLook is the time without movement after which we check that the client is still there.
const stallLook = 20 * time.Millisecond

// alive returns the reason not to wait any longer for a stream that stands still.
func (c *client) alive(ctx context.Context, still, limit time.Duration) error {
	select {
	case <-c.Ended:
		return openssh.ErrEnded
	case <-ctx.Done():
		return context.Canceled
	default:
	}
	if still > limit {
		return openssh.ErrStalled
	}
	return nil
}
