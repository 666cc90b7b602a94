//go:build linux

package transfer

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
	"sshpace/internal/record"
)

// Subject is a method whose speed is measured.
type Subject struct {
	record.Method
	// Run moves size bytes from end to end.
	Run func(ctx context.Context, size int64) (Reading, error)
	// Check moves size bytes and compares what arrived with what was sent. It is
	// not timed. nil where Run does so itself.
	Check func(ctx context.Context, size int64) error
	// Login logs in and does nothing; nil where that is of no interest.
	Login func(ctx context.Context) (Reading, error)

	disk   func(ctx context.Context) (record.Limit, bool, error) // whether a disk is its limit; nil: it copies no files
	fixed  int64                                                 // size of long runs that cannot be chosen; 0: it can
	failed int
	out    bool                   // given up
	done   map[record.RunKind]int // runs that went well before this one was gone on with
	walls  map[record.RunKind][]time.Duration
}

// Turns is how subjects are measured.
type Turns struct {
	Rounds  int
	Budget  time.Duration // instead of Rounds: half of it is for preparing, and no round but the first begins that would end later
	Seed    uint64
	Size    int64         // of the long runs; 0: as much as takes about RunTime
	Most    int64         // at most that much, where Size is 0
	RunTime time.Duration // that a long run is to take
	Old     *record.File  // what was measured before, and is gone on with; nil: nothing
	// List is called for each method instead of measuring any; nil to measure.
	List func(m record.Method)
	// Told is called before each run, never while something is timed.
	Told func(m record.Method, round int)
}

// checked is how much is moved to see whether it arrives as it was sent: not a
// multiple of any block.
const checked = 3<<20 + 517

// checkedFar is the same over a long path, where some programs move less than a
// megabyte in a second.
const checkedFar = 256<<10 + 517

// Measure checks and calibrates all subjects, and then gives each of them, in
// every round, a short and a long run, all in random order: what slows the machine
// for a while slows all of them alike; what has no figure then gets some turns more. It ends after the run in which drain ends,
// or at once with ctx. A subject that fails is given up, the others go on.
func (t Turns) Measure(ctx, drain context.Context, all []*Subject, sink record.Sink) error {
	if t.List != nil {
		for _, c := range all {
			t.List(c.Method)
		}
		return nil
	}
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
		if t.Budget > 0 && time.Since(began) > t.Budget/2 && c.Why == "" {
			c.Why = "no time was left: a longer --budget, or --only"
		}
		if err := t.prepare(ctx, c, sink); err != nil {
			return err
		}
	}
	rounds := sched.Rounds{Count: t.Rounds}
	if t.Budget > 0 {
		rounds = sched.Rounds{Count: 1, Budget: max(1, t.Budget-time.Since(began))}
	}
	random, n := rand.New(rand.NewPCG(t.Seed, 0)), 0
	for n = range rounds.Each() {
		if err := t.round(ctx, drain, n, all, random, sink); err != nil || drain.Err() != nil {
			return cmp.Or(err, context.Cause(ctx))
		}
		if !slices.ContainsFunc(all, func(c *Subject) bool { return !c.out }) {
			break
		}
	}
	for more := 1; more <= again && (t.Budget == 0 || time.Since(began) < t.Budget); more++ {
		late := slices.DeleteFunc(slices.Clone(all), func(c *Subject) bool { return !c.figureless() })
		if err := t.round(ctx, drain, n+more, late, random, sink); err != nil || drain.Err() != nil {
			return cmp.Or(err, context.Cause(ctx))
		}
	}
	return nil
}

// round gives each subject its turns, in random order, until drain ends.
func (t Turns) round(ctx, drain context.Context, n int, all []*Subject, random *rand.Rand, sink record.Sink) error {
	var turns []turn
	for _, c := range all {
		turns = append(turns, c.turns(n)...)
	}
	random.Shuffle(len(turns), func(i, j int) { turns[i], turns[j] = turns[j], turns[i] })
	for _, u := range turns {
		if drain.Err() != nil {
			return nil
		}
		if err := t.take(ctx, u, t.shown(n), sink); err != nil {
			return err
		}
	}
	return nil
}

// shown is the number of a round for people: those of again are the last one's.
func (t Turns) shown(round int) int {
	if t.Budget > 0 {
		return round + 1
	}
	return min(round+1, t.Rounds)
}

// again is how many rounds more a subject gets that has no figure, because other work
// held up its short runs for longer than its long ones took.
const again = 3

// figureless reports whether no long run took so much longer than the short ones that
// it tells something.
func (c *Subject) figureless() bool {
	short, long := slices.Sorted(slices.Values(c.walls[record.ShortRun])), c.walls[record.LongRun]
	return len(short) > 0 && len(long) > 0 && !record.Tells(slices.Max(long), short[len(short)/2])
}

// took remembers what a run took.
func (c *Subject) took(kind record.RunKind, wall time.Duration) {
	if c.walls == nil {
		c.walls = map[record.RunKind][]time.Duration{}
	}
	c.walls[kind] = append(c.walls[kind], wall)
}

// remember finds in an older file what was measured of subjects, and returns the
// last number of a method there. What could not be measured then is tried again.
func (t Turns) remember(all []*Subject) (last int) {
	if t.Old == nil {
		return 0
	}
	for _, method := range t.Old.Methods {
		last = max(last, method.ID)
		i := slices.IndexFunc(all, func(c *Subject) bool { return c.Same(method) && c.Why == method.Why })
		if i < 0 {
			continue
		}
		c := all[i]
		c.Method, c.out, c.done = method, method.Why != "", map[record.RunKind]int{}
		for _, run := range t.Old.Runs {
			if run.Method == method.ID && run.Failure == "" {
				c.done[run.Kind]++
				c.took(run.Kind, run.WallNS)
			}
		}
	}
	return last
}

// prepare checks and calibrates a subject, and writes down which method it is.
func (t Turns) prepare(ctx context.Context, c *Subject, sink record.Sink) error {
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
	return sink(record.Record{Method: &c.Method})
}

func (t Turns) told(c *Subject, round int) {
	if t.Told != nil {
		t.Told(c.Method, round)
	}
}

// calibrate checks a subject, which also warms up what it needs, and finds
// the size of its long runs.
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
	target := max(t.RunTime, 2*short) // else the short runs' noise would be most of the figure
	const first = 4 << 20
	// What more bytes cost tells how many take the target. The first MiB alone do not,
	// but on a slow way: a connection's buffers grow meanwhile, and ssh and sshd copy and
	// clear them each time, for 0.2 s in all where files are copied, and 0.5 s by psftp.
	const slow = 4 // times the target
	size, before, enough := min(first, t.Most), short, slow*target
	for less := int64(0); size < t.Most; {
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
	return max(1<<20, min(size, t.Most)), nil
}

// best is what a run takes: the shorter of two where the first takes longer than
// enough, because other work may have held it up.
func (c *Subject) best(ctx context.Context, size int64, enough time.Duration) (time.Duration, error) {
	first, err := c.Run(ctx, size)
	if err != nil || first.Wall <= enough {
		return first.Wall, err
	}
	second, err := c.Run(ctx, size)
	return min(first.Wall, second.Wall), err
}

// power is the power of two that is nearest to n: subjects of about the same
// speed shall share their files.
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

// turns are the runs of a subject in one round, which counts from 0.
func (c *Subject) turns(round int) []turn {
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
	return slices.DeleteFunc(turns, func(t turn) bool { return round < c.done[t.kind] })
}

// patience is how many runs of a subject may fail.
const patience = 3

// take is one turn.
func (t Turns) take(ctx context.Context, u turn, round int, sink record.Sink) error {
	if u.out {
		return nil
	}
	t.told(u.Subject, round)
	run := record.Run{Method: u.ID, Kind: u.kind, Start: time.Now().UTC()}
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
	return sink(record.Record{Run: &run})
}
