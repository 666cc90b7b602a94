//go:build linux

package login

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/record"
	"sshpace/internal/sys/proc"
)

// Case is one way of logging in.
type Case struct {
	Factor string // what it changes: "" for the plain case
	Level  string
	Argv   ArgvFunc
	// Ends are what Argv names: other ends with the same server do as well. None: it
	// names none of ours.
	Ends *Ends
	// After is called after every login: the server's CPU time (0: not known) and
	// what a relay saw (nil: none).
	After func(ctx context.Context) (time.Duration, *Wire)
}

// Plan says how often cases are carried out.
type Plan struct {
	Rounds int           // of all cases, each time in another order; 0: what fits into Budget
	Budget time.Duration // at least two rounds are made, or one with others beside each other
	Pause  time.Duration // before each login
	Strict bool          // the first failure ends it, as is right with others' hosts
	Seed   uint64        // of the order
	// Note is given a record of every kind of login and of every login; nil is given
	// none.
	Note       record.Sink
	Old        *record.File // a result that is gone on with: its logins count; nil: none is
	Lanes      []Lane       // where logins are carried out beside others for a part of Budget
	RoundTrips int          // of the plain login, for its record; 0: not counted
	Conditions string       // likewise, of all others
}

// Survey carries out cases. What fails is not tried again. When ctx ends, the
// results so far are returned with its error; there are none before every case was
// carried out once.
func (e *Ends) Survey(ctx context.Context, cases []Case, p Plan) ([]Result, error) {
	s := &survey{ends: e, cases: cases, alike: alike(cases), plan: p, made: make([]int, len(cases)), failures: make([]error, len(cases))}
	if p.Note == nil {
		s.plan.Note = func(record.Record) error { return nil }
	}
	err := s.begin()
	if err == nil {
		err = s.rounds(ctx)
	}
	if err != nil && slices.ContainsFunc(s.alike, func(of kindOf) bool { return s.made[of] == 0 }) {
		return nil, err
	}
	var names []named
	for _, c := range cases {
		names = append(names, named{c.Factor, c.Level})
	}
	out, _ := summarized(names, s.alike, s.of, s.logins)
	for i, of := range s.alike {
		if failure := s.failures[of]; failure != nil {
			out[i].Failure = failure.Error()
		}
	}
	return out, err
}

// survey is a Survey under way.
type survey struct {
	ends  *Ends
	cases []Case
	alike []kindOf // whose logins count for each case
	plan  Plan
	tried bool

	mu       sync.Mutex // lanes use what follows
	order    *rand.Rand
	turns    []kindOf    // that are next beside others
	logins   []*observed // in the order of time, where nothing is beside another
	of       []kindOf    // each of these
	made     []int       // logins of each kind
	failures []error
}

// besides is how much of the time, as multiples of a round alone, goes to logins beside
// each other.
const besides = 3

func (s *survey) rounds(ctx context.Context) error {
	began := time.Now().Add(-s.spent())
	end := began.Add(s.plan.Budget)
	done := s.done()
	if s.plan.Rounds > 0 && done >= s.plan.Rounds || done > 1 && s.plan.Rounds == 0 && time.Now().After(end) {
		return nil
	}
	for n := 1 + done; ; n++ {
		round := time.Now()
		for _, i := range s.round() {
			if err := s.login(ctx, i, nil); err != nil {
				return err
			}
		}
		took := time.Since(round)
		if s.plan.Rounds > 0 {
			if n >= s.plan.Rounds {
				return nil
			}
			continue
		}
		if len(s.plan.Lanes) > 0 {
			until := time.Now().Add(besides * took)
			if until.Add(2 * took).After(end) { // no time for another round and a few behind it
				until = end
			}
			if err := s.aside(ctx, until); err != nil {
				return err
			}
		}
		if (n > 1 || len(s.plan.Lanes) > 0) && time.Now().Add(time.Since(began)/time.Duration(n*s.parts())).After(end) {
			return nil
		}
	}
}

// parts is how many rounds' time a round takes with what follows it.
func (s *survey) parts() int {
	if len(s.plan.Lanes) > 0 {
		return 1 + besides
	}
	return 1
}

// round is the order of one round of all kinds.
func (s *survey) round() (kinds []kindOf) {
	for _, i := range s.order.Perm(len(s.cases)) {
		if s.alike[i] == i {
			kinds = append(kinds, i)
		}
	}
	return kinds
}

// aside carries logins out in all lanes until it is time.
func (s *survey) aside(ctx context.Context, until time.Time) error {
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

// turn is the kind of login that is next beside others.
func (s *survey) turn() kindOf {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) == 0 {
		s.turns = s.round()
	}
	i := s.turns[0]
	s.turns = s.turns[1:]
	return i
}

// login carries out case i once, in a lane or alone.
func (s *survey) login(ctx context.Context, i kindOf, lane *Lane) error {
	if s.failed(i) {
		return nil
	}
	if s.tried && !sched.For(ctx, s.plan.Pause) {
		return context.Canceled
	}
	s.tried = true
	o, err := s.observe(ctx, s.cases[i], lane)
	failed := (*FailedError)(nil)
	if !errors.As(err, &failed) && err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if noted := s.plan.Note(record.Record{LoginRun: o.record(i+1, err)}); noted != nil {
		return noted
	}
	switch {
	case err == nil:
		s.logins, s.of = append(s.logins, o), append(s.of, i)
		s.made[i]++
	case s.plan.Strict || i == 0: // without the plain login there is nothing to compare with
		return err
	default:
		s.failures[i] = err
	}
	return nil
}

func (s *survey) failed(i kindOf) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failures[i] != nil
}

// observe is a login of a case.
func (s *survey) observe(ctx context.Context, c Case, lane *Lane) (o *observed, err error) {
	o = &observed{core: alone}
	watch := func() error { o.Login, err = s.ends.Watch(ctx, c.Argv); return err }
	if lane != nil {
		c, o.core = lane.moved(c), lane.core
		ends := *s.ends
		ends.Dir = lane.dir
		watch = func() error {
			return proc.OnCore(lane.core, func() error { o.Login, err = ends.Watch(ctx, c.Argv); return err })
		}
	}
	o.began = time.Now()
	err = watch()
	if c.After != nil {
		o.server, o.wire = c.After(ctx)
	}
	return o, err
}

// ErrOtherKinds says that a result cannot be gone on with.
var ErrOtherKinds = errors.New("the kinds of login that it has are not those that would be measured now")

// begin notes what is to be measured, or takes over what has been.
func (s *survey) begin() error {
	if s.plan.Old == nil {
		s.order = rand.New(rand.NewPCG(s.plan.Seed, 0))
		return s.kinds()
	}
	old := recordedIn(s.plan.Old)
	s.order = rand.New(rand.NewPCG(s.plan.Seed, uint64(len(old.logins))))
	if !slices.Equal(old.alike, s.alike) || !slices.EqualFunc(old.names, s.cases, func(n named, c Case) bool { return n == named{c.Factor, c.Level} }) {
		return ErrOtherKinds
	}
	for i, failure := range old.failures {
		if failure != "" {
			s.failures[i] = errors.New(failure)
		}
	}
	s.logins, s.of = old.logins, old.kinds
	for _, i := range s.of {
		s.made[i]++
	}
	return nil
}

// done is how many rounds alone there have been.
func (s *survey) done() int {
	made := make([]int, len(s.cases))
	for n, o := range s.logins {
		if o.core == alone {
			made[s.of[n]]++
		}
	}
	least := math.MaxInt
	for i, n := range made {
		if s.alike[i] == i && s.failures[i] == nil {
			least = min(least, n)
		}
	}
	return least
}

// spent is about how long the logins so far have taken.
func (s *survey) spent() (all time.Duration) {
	for _, o := range s.logins {
		if o.core == alone {
			all += o.Whole
		} else {
			all += o.Whole / time.Duration(max(1, len(s.plan.Lanes)))
		}
	}
	return all
}

// alike says for each case whose logins count for it: those of the first one with
// the same command line, which names the server, too.
func alike(cases []Case) []kindOf {
	var argvs [][]string
	of := make([]kindOf, len(cases))
	for i, c := range cases {
		argvs = append(argvs, c.Argv(""))
		of[i] = slices.IndexFunc(argvs, func(argv []string) bool { return slices.Equal(argv, argvs[i]) })
	}
	return of
}

// Distinct is how many logins a round of cases takes.
func Distinct(cases []Case) (n int) {
	for i, of := range alike(cases) {
		if of == i {
			n++
		}
	}
	return n
}

// kinds notes what is to be measured.
func (s *survey) kinds() error {
	for i, c := range s.cases {
		k := record.LoginKind{ID: i + 1, Factor: c.Factor, Level: c.Level, Conditions: s.plan.Conditions}
		if i == 0 {
			k.Conditions, k.RoundTrips = "", s.plan.RoundTrips
		}
		if of := s.alike[i]; of != i {
			k.Like = of + 1
		}
		if err := s.plan.Note(record.Record{LoginKind: &k}); err != nil {
			return err
		}
	}
	return nil
}
