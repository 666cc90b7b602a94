//go:build linux

package transfer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/bench/rounds"
	"sshpace/internal/record"
)

// Subject is a method whose speed is measured.
type Subject struct {
	record.Method
	// Run moves size bytes from end to end.
	Run func(ctx context.Context, size int64) (Reading, error)
	// Check moves size bytes and compares the received data with the sent data. It is not timed.
	// nil where Run does so itself.
	Check func(ctx context.Context, size int64) error
	// Login logs in and does nothing; nil where that is of no interest.
	Login func(ctx context.Context) (Reading, error)

	disk   func(ctx context.Context) (record.Limit, bool, error) // whether a disk is its limit; nil: it copies no files
	fixed  int64                                                 // size of long runs that cannot be chosen; 0: it can
	failed bool                                                  // a run of it did
}

// Turns says how subjects are measured.
type Turns struct {
	rounds.Plan
	Size int64 // of the long runs; 0: as much as takes about a while
}

// Long runs without a size from the user.
const (
	longRun   = 700 * time.Millisecond // the target time of one
	mostBytes = 256 << 20              // they are in memory
)

// Takes returns the approximate time of methods on loopback, by rounds of a short and a long run
// and a login each.
func Takes(methods, rounds int) time.Duration {
	const preparing = 2 // as long as this many rounds
	return time.Duration(methods*(rounds+preparing)) * (longRun + 300*time.Millisecond)
}

// checked is how much is moved to verify that it arrives unchanged: not a multiple of any block.
const checked = 3<<20 + 517

// checkedFar is the same for a long path, where some programs move less than a megabyte a second.
const checkedFar = 256<<10 + 517

// patience is how many runs of a subject may fail.
const patience = 3

// Measure checks and calibrates all subjects, and then gives each of them a short and a long run,
// and a login, in every round.
func (t Turns) Measure(ctx, drain context.Context, all []*Subject, sink record.Sink) error {
	t.Patience, t.Note = patience, sink
	var subjects []*rounds.Subject
	for _, c := range all {
		subjects = append(subjects, &rounds.Subject{Subject: record.Subject{Method: &c.Method}, Runs: c.runs(), Shows: figure, Prepare: func(ctx context.Context) error {
			size, err := t.calibrate(ctx, c)
			c.SizeBytes = unit.Bytes(size)
			return err
		}})
	}
	return t.Plan.Measure(ctx, drain, subjects)
}

// runs returns the runs of a subject in a round.
func (c *Subject) runs() []rounds.Run {
	run := func(kind record.RunKind, do func(context.Context) (Reading, error)) rounds.Run {
		return rounds.Run{Kind: kind, Do: func(ctx context.Context) (record.Reading, error) {
			reading, err := do(ctx)
			c.failed = c.failed || err != nil
			return reading.record(err), nil
		}}
	}
	all := []rounds.Run{
		run(record.ShortRun, func(ctx context.Context) (Reading, error) { return c.Run(ctx, 1) }),
		run(record.LongRun, func(ctx context.Context) (Reading, error) { return c.Run(ctx, int64(c.SizeBytes)) }),
	}
	if c.Login != nil {
		all = append(all, run(record.LoginRun, c.Login))
	}
	return all
}

// record returns the reading as it is recorded; err is the reason why the run failed.
func (r Reading) record(err error) record.Reading {
	x := record.Reading{WallNS: r.Wall, VerifiedNS: r.Verified}
	if r.Client > 0 {
		x.ClientCPUNS = &r.Client
	}
	if r.Server > 0 {
		x.ServerCPUNS = &r.Server
	}
	if err != nil {
		x.Failure = err.Error()
	}
	return x
}

// figure reports whether runs give a figure: unless no long one took so much longer than the short
// ones that they do.
func figure(walls map[record.RunKind][]time.Duration) bool {
	long, short := walls[record.LongRun], walls[record.ShortRun]
	return len(long) == 0 || len(short) == 0 || slices.Max(record.Moving(long, short)) > 0
}

// calibrate checks a subject, which also warms it up, and finds the size of its long runs.
func (t Turns) calibrate(ctx context.Context, c *Subject) (size int64, err error) {
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
	short, err := c.best(ctx, 1, 0)
	if err != nil {
		return 0, err
	}
	target := max(longRun, 2*short) // otherwise the short runs' noise would be most of the figure
	const first = 4 << 20
	// The cost of more bytes shows how many take the target time. The first MiB alone do not,
	// except on a slow path: a connection's buffers grow meanwhile, and ssh and sshd copy and clear
	// them each time, for 0.2 s in all where files are copied, and 0.5 s by psftp.
	const slow = 4 // times the target
	size, before, enough := min(first, mostBytes), short, slow*target
	for less := int64(0); size < mostBytes; {
		long, err := c.best(ctx, size, before+min(enough, target))
		if err != nil {
			return 0, err
		}
		net := long - before
		if net > enough {
			size = power(float64(size-less) * float64(target) / float64(net))
			break
		}
		less, before, enough = size, long, target/4
		if net > target {
			size *= 2
		} else {
			size *= 4
		}
	}
	return max(1<<20, min(size, mostBytes)), nil
}

// best returns the time of a run: the shorter of two if the first takes longer than enough, because
// other work may have held it up.
func (c *Subject) best(ctx context.Context, size int64, enough time.Duration) (time.Duration, error) {
	first, err := c.Run(ctx, size)
	if err != nil || first.Wall <= enough {
		return first.Wall, err
	}
	second, err := c.Run(ctx, size)
	return min(first.Wall, second.Wall), err
}

// power returns the power of two that is nearest to n: subjects of about the same speed should
// share their files.
func power(n float64) int64 {
	size := int64(1)
	for float64(size)*1.4142 < n {
		size *= 2
	}
	return size
}
