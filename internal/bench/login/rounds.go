//go:build linux

package login

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/sys/proc"
)

// Case is one way of logging in.
type Case struct {
	Factor string // the changed property: "" for the plain case
	Level  string
	Argv   ArgvFunc
	// Ends are the ends in Argv: other ends with the same server do as well. nil: it names none of
	// ours.
	Ends *Ends
	// After is called after every login; it returns the server's CPU time (0: unknown) and the
	// traffic of a relay (nil: none).
	After func(ctx context.Context) (time.Duration, *Wire)
}

// Plan says how often cases are carried out.
type Plan struct {
	Rounds sched.Rounds  // with a budget at least two are made, or one if there are simultaneous ones
	Pause  time.Duration // between logins; 0: many may go on at a time
	Strict bool          // the first failure ends it, as is right with others' hosts
	Seed   uint64        // of the order
	// Note is given a record of every kind of login and of every login.
	Note       record.Sink
	Old        *record.File // a result to continue, which fits: its logins count; nil: none
	List       bool         // note the kinds, and carry none out
	Lanes      []Lane       // lanes for simultaneous logins during a part of the budget
	RoundTrips int          // of the plain login, for its record; 0: not counted
	Conditions string       // for the same, of all others
}

// Survey carries out cases. A case that fails is not tried again.
func (e *Ends) Survey(ctx context.Context, cases []Case, p Plan) error {
	s := &survey{ends: e, cases: cases, alike: alike(cases), plan: p, made: make([]int, len(cases)), failed: make([]bool, len(cases))}
	if p.Pause > 0 {
		s.ticket = admit.New(admit.OneByOne(p.Pause)).Ticket()
	}
	if err := s.begin(); err != nil || p.List {
		return err
	}
	rounds := p.Rounds
	if rounds.Budget > 0 {
		rounds.Count = 2
		if len(p.Lanes) > 0 {
			rounds.Count = 1
		}
	}
	err := sched.Loop[kindOf]{
		Rounds: rounds, Seed: p.Seed, Made: s.done(), Spent: s.spent, Due: func(int) []kindOf { return s.due() },
		Take:  func(_ int, i kindOf) error { return s.login(ctx, i, nil) },
		After: func(took, left time.Duration) error { return s.aside(ctx, took, left) },
	}.Run(ctx)
	return cmp.Or(err, ctx.Err())
}

// survey is a running Survey.
type survey struct {
	ends   *Ends
	cases  []Case
	alike  []kindOf // whose logins count for each case
	plan   Plan
	ticket *admit.Ticket // nil: many may go on at a time

	mu     sync.Mutex // lanes share the fields below
	next   []kindOf   // simultaneous
	logins int        // so far
	made   []int      // of each kind, alone
	spent  time.Duration
	failed []bool
}

// besides is the time of simultaneous logins, as a multiple of a round alone.
const besides = 3

// due returns the kinds of a round.
func (s *survey) due() (kinds []kindOf) {
	for i, of := range s.alike {
		if of == i && !s.failed[i] {
			kinds = append(kinds, i)
		}
	}
	return kinds
}

// aside carries logins out in all lanes for a while after a round alone, or until the end if there
// is no time for another round and a few after it.
func (s *survey) aside(ctx context.Context, took, left time.Duration) error {
	if left < (besides+2)*took {
		took = left / besides
	}
	until := time.Now().Add(besides * took)
	var all sync.WaitGroup
	errs := make([]error, len(s.plan.Lanes))
	for n := range s.plan.Lanes {
		all.Go(func() {
			for errs[n] == nil && time.Now().Before(until) {
				errs[n] = s.login(ctx, s.turn(), &s.plan.Lanes[n])
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// turn returns the next kind of login, in random order, for logins that run at the same time.
func (s *survey) turn() kindOf {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = slices.DeleteFunc(s.next, func(i kindOf) bool { return s.failed[i] })
	if len(s.next) == 0 {
		s.next = sched.Shuffled(s.plan.Seed, -s.logins, s.due())
	}
	i := s.next[0]
	s.next = s.next[1:]
	return i
}

// login carries out case i once, in a lane or alone.
func (s *survey) login(ctx context.Context, i kindOf, lane *Lane) error {
	if s.ticket.Admit(ctx, s.ends.Destination.Label) != nil {
		return context.Canceled
	}
	l, err := s.observe(ctx, i, lane)
	s.ticket.End(admit.Done)
	failed := (*FailedError)(nil)
	if !errors.As(err, &failed) && err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if noted := s.plan.Note(l); noted != nil {
		return noted
	}
	if err != nil && (s.plan.Strict || i == 0) { // without the plain login there is nothing to compare with
		return err
	}
	if s.failed[i] = s.failed[i] || err != nil; err == nil {
		s.count(i, l)
	}
	return nil
}

// count adds a login to the counts.
func (s *survey) count(i kindOf, l *record.Reading) {
	s.logins++
	if coreOf(l) == alone {
		s.made[i]++
		s.spent += l.WallNS
		return
	}
	s.spent += l.WallNS / time.Duration(max(1, len(s.plan.Lanes)))
}

// observe carries out case i. The error of a login that failed is in its record, too.
func (s *survey) observe(ctx context.Context, i kindOf, lane *Lane) (r *record.Reading, err error) {
	c, ends, watched := s.cases[i], *s.ends, (*Login)(nil)
	r = &record.Reading{Subject: i + 1}
	watch := func() error { watched, err = ends.Watch(ctx, c.Argv); return err }
	if lane != nil {
		c, r.Core, ends.Dir = lane.moved(c), &lane.core, lane.dir
	}
	if r.Start = time.Now(); lane != nil {
		err = proc.OnCore(lane.core, watch)
	} else {
		err = watch()
	}
	if err != nil {
		r.Failure = err.Error()
	}
	if watched != nil {
		r.WallNS, r.ClientCPUNS, r.Phases = watched.Whole, &watched.ClientCPU, watched.Spans
	}
	if c.After == nil {
		return r, err
	}
	server, wire := c.After(ctx)
	if server > 0 {
		r.ServerCPUNS = &server
	}
	if wire != nil {
		r.UpBytes, r.DownBytes, r.Stalls = wire.Up, wire.Down, wire.Stalls
	}
	return r, err
}

// Fit returns the reason why cases cannot continue a result; nil is none.
func Fit(cases []Case, result *record.File) error {
	if result == nil {
		return nil
	}
	old := recordedIn(result)
	if !slices.Equal(old.alike, alike(cases)) || !slices.EqualFunc(old.names, cases, func(n named, c Case) bool { return n == named{c.Factor, c.Level} }) {
		return errors.New("its kinds of login differ from those that would be measured now")
	}
	return nil
}

// begin records the plan of the measurement, or takes over that of the result.
func (s *survey) begin() error {
	if s.plan.Old == nil {
		return s.kinds()
	}
	old := recordedIn(s.plan.Old)
	for i, failure := range old.failures {
		s.failed[i] = failure != ""
	}
	for n, l := range old.logins {
		s.count(old.kinds[n], l)
	}
	return nil
}

// done returns the number of rounds alone so far.
func (s *survey) done() int {
	least := math.MaxInt
	for _, i := range s.due() {
		least = min(least, s.made[i])
	}
	return least
}

// alike returns for each case the case whose logins count for it: the first one with the same
// command line, which names the server, too.
func alike(cases []Case) []kindOf {
	var argvs [][]string
	of := make([]kindOf, len(cases))
	for i, c := range cases {
		argvs = append(argvs, c.Argv(""))
		of[i] = slices.IndexFunc(argvs, func(argv []string) bool { return slices.Equal(argv, argvs[i]) })
	}
	return of
}

// Distinct returns the number of logins in a round of cases.
func Distinct(cases []Case) (n int) {
	for i, of := range alike(cases) {
		if of == i {
			n++
		}
	}
	return n
}

// kinds records the kinds to measure.
func (s *survey) kinds() error {
	for i, c := range s.cases {
		k := record.LoginKind{Factor: c.Factor, Level: c.Level, Conditions: s.plan.Conditions}
		if i == 0 {
			k.Conditions, k.RoundTrips = "", s.plan.RoundTrips
		}
		if of := s.alike[i]; of != i {
			k.Like = of + 1
		}
		if err := s.plan.Note(&record.Subject{ID: i + 1, LoginKind: &k}); err != nil {
			return err
		}
	}
	return nil
}
