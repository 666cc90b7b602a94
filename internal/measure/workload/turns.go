//go:build linux

package workload

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Contestant is a way whose speed is measured.
type Contestant struct {
	record.Way
	// Run moves size bytes from end to end.
	Run func(ctx context.Context, size int64) (Reading, error)
	// Check moves size bytes and compares what arrived with what was sent. It is
	// not timed. nil where Run does so itself.
	Check func(ctx context.Context, size int64) error
	// Login logs in and does nothing; nil where that is of no interest.
	Login func(ctx context.Context) (Reading, error)

	fixed  int64 // size of long runs that cannot be chosen; 0: it can
	failed int
	out    bool // given up
}

// Turns is how contestants are measured.
type Turns struct {
	Rounds int
	Seed   uint64
	Size   int64         // of the long runs; 0: as much as takes about Target
	Most   int64         // at most that much, where Size is 0
	Target time.Duration // that a long run is to take
	// Told is called before each run, never while something is timed.
	Told func(w record.Way, round int)
}

// checked is how much is moved to see whether it arrives as it was sent: not a
// multiple of any block.
const checked = 3<<20 + 517

// checkedFar is the same over a long path, where some programs move less than a
// megabyte in a second.
const checkedFar = 256<<10 + 517

// Measure checks and calibrates all contestants, and then gives each of them, in
// every round, a short and a long run, all in random order: what slows the machine
// for a while slows all of them alike. It ends after the run in which drain ends,
// or at once with ctx. A contestant that fails is given up, the others go on.
func (t Turns) Measure(ctx, drain context.Context, all []*Contestant, sink record.Sink) error {
	for _, c := range all {
		if drain.Err() != nil {
			return context.Cause(ctx)
		}
		if err := t.prepare(ctx, c, sink); err != nil {
			return err
		}
	}
	random := rand.New(rand.NewPCG(t.Seed, 0))
	for round := range t.Rounds {
		var turns []turn
		for _, c := range all {
			turns = append(turns, c.turns()...)
		}
		random.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
		for _, u := range turns {
			if drain.Err() != nil {
				return context.Cause(ctx)
			}
			if err := t.take(ctx, u, round+1, sink); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare checks and calibrates a contestant, and writes down which way it is.
func (t Turns) prepare(ctx context.Context, c *Contestant, sink record.Sink) error {
	if c.Why == "" {
		t.told(c, 0)
		size, err := t.calibrate(ctx, c)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		c.SizeBytes = unit.Bytes(size)
		if err != nil {
			c.Why = err.Error()
		}
	}
	c.out = c.Why != ""
	return sink(record.Record{Way: &c.Way})
}

func (t Turns) told(c *Contestant, round int) {
	if t.Told != nil {
		t.Told(c.Way, round)
	}
}

// calibrate checks a contestant, which also warms up what it needs, and finds
// the size of its long runs.
func (t Turns) calibrate(ctx context.Context, c *Contestant) (size int64, err error) {
	if c.Check != nil {
		size := int64(checked)
		if c.RTT > 0 {
			size = checkedFar
		}
		if err := c.Check(ctx, size); err != nil {
			return 0, err
		}
	}
	if size := cmp.Or(c.fixed, t.Size); size > 0 {
		return size, nil
	}
	short, err := c.Run(ctx, 1)
	if err != nil {
		return 0, err
	}
	const first = 4 << 20
	for size = min(first, t.Most); size < t.Most; size *= 4 {
		long, err := c.Run(ctx, size)
		if err != nil {
			return 0, err
		}
		if net := long.Wall - short.Wall; net > t.Target/4 {
			size = power(float64(size) * float64(t.Target) / float64(net))
			break
		}
	}
	return max(1<<20, min(size, t.Most)), nil
}

// power is the power of two that is nearest to n: contestants of about the same
// speed shall share their files.
func power(n float64) int64 {
	size := int64(1)
	for float64(size)*1.4142 < n {
		size *= 2
	}
	return size
}

// turn is one run of a contestant.
type turn struct {
	*Contestant
	kind record.RunKind
	run  func(ctx context.Context) (Reading, error)
}

// turns are the runs of a contestant in one round.
func (c *Contestant) turns() []turn {
	if c.out {
		return nil
	}
	sized := func(size int64) func(context.Context) (Reading, error) {
		return func(ctx context.Context) (Reading, error) { return c.Run(ctx, size) }
	}
	turns := []turn{{c, record.ShortRun, sized(1)}, {c, record.LongRun, sized(int64(c.SizeBytes))}}
	if c.Login != nil {
		turns = append(turns, turn{c, record.LoginRun, c.Login})
	}
	return turns
}

// patience is how many runs of a contestant may fail.
const patience = 3

// take is one turn.
func (t Turns) take(ctx context.Context, u turn, round int, sink record.Sink) error {
	if u.out {
		return nil
	}
	t.told(u.Contestant, round)
	run := record.Run{Way: u.ID, Kind: u.kind, Start: time.Now().UTC()}
	reading, err := u.run(ctx)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	run.WallNS, run.VerifiedNS, run.ClientCPUNS = reading.Wall, reading.Verified, &reading.Client
	if reading.Server > 0 {
		run.ServerCPUNS = &reading.Server
	}
	if err != nil {
		run.Failure = err.Error()
		u.failed++
		u.out = u.failed >= patience
	}
	return sink(record.Record{Run: &run})
}
