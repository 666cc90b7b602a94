//go:build linux

package transfer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Subject is a method whose speed is measured.
type Subject struct {
	ID int // of its record; 0: there is none yet
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
	failed int
	out    bool                   // given up
	done   map[record.RunKind]int // successful runs before this one was resumed
	walls  map[record.RunKind][]time.Duration
}

// Turns says how subjects are measured.
type Turns struct {
	Rounds sched.Rounds // half of a budget is for preparing
	Seed   uint64
	Size   int64        // of the long runs; 0: as much as takes about a while
	Old    *record.File // earlier measurements, to continue; nil: none
	List   bool         // the methods are written down, and none is measured
	// Told is called before each run, never while something is timed.
	Told func(m record.Method, round int)
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

// Measure checks and calibrates all subjects, and then gives each of them, in every round, a short
// and a long run, all in random order: a temporary slowdown of the machine hits all of them alike;
// subjects without a figure then get some turns more. It ends after the run in which drain ends, or
// at once with ctx. A subject that fails is given up, the others continue.
func (t Turns) Measure(ctx, drain context.Context, all []*Subject, sink record.Sink) error {
	began, last := time.Now(), t.remember(all)
	for _, c := range all {
		if drain.Err() != nil {
			return context.Cause(ctx)
		}
		if c.ID > 0 {
			continue
		}
		last++
		c.ID = last
		if t.Rounds.Budget > 0 && time.Since(began) > t.Rounds.Budget/2 && c.Why == "" {
			c.Why = "no time was left; use a longer --budget, or pick some with --only"
		}
		if err := t.prepare(ctx, c, sink); err != nil {
			return err
		}
	}
	if t.List {
		return nil
	}
	made := made(all)
	due := func(round int, wanted func(*Subject) bool) (due []turn) {
		for _, c := range all {
			for _, u := range c.turns() {
				if round >= c.done[u.kind] && wanted(c) {
					due = append(due, u)
				}
			}
		}
		return due
	}
	loop := sched.Loop[turn]{Rounds: t.Rounds, Seed: t.Seed, Made: made, Spent: time.Since(began), Due: func(round int) []turn {
		made = round + 1
		return due(round, func(*Subject) bool { return true })
	}, Take: func(_ int, u turn) error { return t.take(ctx, u, made, sink) }}
	if err := loop.Run(drain); err != nil {
		return err
	}
	loop.Rounds, loop.Made = sched.Rounds{Count: made + again}, made
	loop.Due = func(round int) []turn {
		if t.Rounds.Budget > 0 && time.Since(began) >= t.Rounds.Budget {
			return nil
		}
		return due(round, (*Subject).figureless)
	}
	return cmp.Or(loop.Run(drain), context.Cause(ctx))
}

// made is how many rounds all subjects that are not given up had before.
func made(all []*Subject) int {
	var done []int
	for _, c := range all {
		for _, u := range c.turns() {
			done = append(done, c.done[u.kind])
		}
	}
	if len(done) == 0 {
		return 0
	}
	return slices.Min(done)
}

// again is how many rounds more a subject without a figure gets, because other work held up its
// short runs for longer than its long ones took.
const again = 3

// figureless reports whether no long run took so much longer than the short ones that it gives a
// figure.
func (c *Subject) figureless() bool {
	long, short := c.walls[record.LongRun], c.walls[record.ShortRun]
	return len(long) > 0 && len(short) > 0 && slices.Max(record.Moving(long, short)) == 0
}

// took records the time of a run.
func (c *Subject) took(kind record.RunKind, wall time.Duration) {
	if c.walls == nil {
		c.walls = map[record.RunKind][]time.Duration{}
	}
	c.walls[kind] = append(c.walls[kind], wall)
}

// remember finds the earlier measurements of subjects in an older file, and returns the last number
// of a method there. Subjects that could not be measured then are tried again.
func (t Turns) remember(all []*Subject) (last int) {
	if t.Old == nil {
		return 0
	}
	for _, method := range t.Old.Methods() {
		last = max(last, method.ID)
		i := slices.IndexFunc(all, func(c *Subject) bool { return c.Same(*method.Method) && c.Why == method.Why })
		if i < 0 {
			continue
		}
		c := all[i]
		c.ID, c.Method, c.out, c.done = method.ID, *method.Method, method.Why != "", map[record.RunKind]int{}
		for _, run := range t.Old.Readings {
			if run.Subject == method.ID && run.Failure == "" {
				c.done[run.Kind]++
				c.took(run.Kind, run.WallNS)
			}
		}
	}
	return last
}

// prepare checks and calibrates a subject, and records its method.
func (t Turns) prepare(ctx context.Context, c *Subject, sink record.Sink) error {
	if c.Why == "" && !t.List {
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
	return sink(&record.Subject{ID: c.ID, Method: &c.Method})
}

func (t Turns) told(c *Subject, round int) {
	if t.Told != nil {
		t.Told(c.Method, round)
	}
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

// turn is one run of a subject.
type turn struct {
	*Subject
	kind record.RunKind
	run  func(ctx context.Context) (Reading, error)
}

// turns returns the runs of a subject in a round.
func (c *Subject) turns() []turn {
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

// patience is how many runs of a subject may fail.
const patience = 3

// take carries out one turn.
func (t Turns) take(ctx context.Context, u turn, round int, sink record.Sink) error {
	if u.out {
		return nil
	}
	t.told(u.Subject, round)
	run := record.Reading{Subject: u.ID, Kind: u.kind, Start: time.Now().UTC()}
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
	} else {
		u.took(u.kind, reading.Wall)
	}
	return sink(&run)
}
