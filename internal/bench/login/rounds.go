//go:build linux

package login

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/bench/rounds"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
	"sshpace/internal/sys/proc"
)

// Case is one way of logging in.
type Case struct {
	Factor string // the changed property: "" for the plain case
	Level  string
	Argv   ArgvFunc
	// Session says that it logs in nowhere: hosts of others are not asked less because it fails.
	Session bool
	// Ends are the ends in Argv: other ends with the same server do as well. nil: it names none of
	// ours.
	Ends *Ends
	// After is called after every login: it adds the server's CPU time and the traffic of a relay,
	// as far as they are known. nil: nothing is.
	After func(ctx context.Context, r *record.Reading)
}

// Plan says how often cases are carried out. With a budget at least two rounds are made, or one if
// there are simultaneous logins.
type Plan struct {
	rounds.Plan
	Pause      time.Duration // between logins; 0: many may go on at a time
	Strict     bool          // the first failure ends it, as is right with others' hosts
	Lanes      []Lane        // lanes for simultaneous logins during a part of the budget
	RoundTrips int           // of the plain login, for its record; 0: not counted
	Conditions string        // for the same, of all others
}

// Survey carries out cases. A case that fails is not tried again.
func (e *Ends) Survey(ctx context.Context, cases []Case, p Plan) error {
	s := &survey{ends: e, cases: cases, plan: p}
	if p.Pause > 0 {
		s.ticket = admit.New(admit.OneByOne(p.Pause)).Ticket()
	}
	for i, kind := range kinds(cases, p) {
		subject := &rounds.Subject{Subject: kind}
		if kind.Like == 0 {
			subject.Runs = []rounds.Run{s.run(i, nil)}
		}
		s.all = append(s.all, subject)
	}
	if p.Old != nil {
		p.Spent = s.resume()
	}
	if p.Rounds.Budget > 0 {
		p.Rounds.Count = 2
		if len(p.Lanes) > 0 {
			p.Rounds.Count = 1
		}
	}
	p.Patience, p.After = 1, func(m *rounds.Measurement, took, left time.Duration) error { return s.aside(ctx, m, took, left) }
	return p.Measure(ctx, ctx, s.all)
}

// survey is a running Survey.
type survey struct {
	ends   *Ends
	cases  []Case
	plan   Plan
	all    []*rounds.Subject // of cases
	ticket *admit.Ticket     // nil: many may go on at a time
	beside atomic.Int64      // how many simultaneous logins there were
}

// kinds returns the kinds of login of cases, as they are recorded. The logins of the first case
// with a command line, which names the server, too, count for all with that line.
func kinds(cases []Case, p Plan) (all []record.Subject) {
	var argvs [][]string
	for i, c := range cases {
		k := &record.LoginKind{Factor: c.Factor, Level: c.Level, Conditions: p.Conditions}
		if i == 0 {
			k.Conditions, k.RoundTrips = "", p.RoundTrips
		}
		argvs = append(argvs, c.Argv(""))
		if of := slices.IndexFunc(argvs, func(argv []string) bool { return slices.Equal(argv, argvs[i]) }); of < i {
			k.Like = of + 1
		}
		all = append(all, record.Subject{LoginKind: k})
	}
	return all
}

// resume leaves out what failed earlier, and returns the time of the logins until then.
func (s *survey) resume() (spent time.Duration) {
	lanes := time.Duration(max(1, len(s.plan.Lanes)))
	for i, kind := range s.plan.Old.Logins() {
		for _, r := range s.plan.Old.Readings {
			switch {
			case r.Subject != kind.ID:
			case r.Failure != "":
				s.all[i].Runs = nil
			case r.Core == nil:
				spent += r.WallNS
			default:
				spent += r.WallNS / lanes
			}
		}
	}
	return spent
}

// besides is the time of simultaneous logins, as a multiple of a round alone.
const besides = 3

// aside carries logins out in all lanes for a while after a round alone, or until the end if there
// is no time for another round and a few after it.
func (s *survey) aside(ctx context.Context, m *rounds.Measurement, took, left time.Duration) error {
	if left < (besides+2)*took {
		took = left / besides
	}
	until := time.Now().Add(besides * took)
	var all sync.WaitGroup
	errs := make([]error, len(s.plan.Lanes))
	for n := range s.plan.Lanes {
		all.Go(func() {
			for errs[n] == nil && time.Now().Before(until) {
				if subject := s.turn(m); subject != nil {
					errs[n] = m.Take(ctx, subject, s.run(slices.Index(s.all, subject), &s.plan.Lanes[n]))
				}
			}
		})
	}
	all.Wait()
	return cmp.Or(errs...)
}

// turn returns the next subject for simultaneous logins: all of them by turns, in random order.
func (s *survey) turn(m *rounds.Measurement) *rounds.Subject {
	n, left := int(s.beside.Add(1)-1), m.Left()
	if len(left) == 0 {
		return nil
	}
	return sched.Shuffled(s.plan.Seed, -1-n/len(left), left)[n%len(left)]
}

// run returns a login of case i, in a lane or alone.
func (s *survey) run(i int, lane *Lane) rounds.Run {
	return rounds.Run{Do: func(ctx context.Context) (record.Reading, error) {
		if err := s.ticket.Admit(ctx, s.ends.Destination.Label); err != nil {
			return record.Reading{}, err
		}
		r, err := s.observe(ctx, i, lane)
		s.ticket.End(admit.Done)
		if err == nil {
			return r, nil
		}
		if _, failed := errors.AsType[*FailedError](err); !failed {
			return record.Reading{}, err
		}
		if r.Failure = err.Error(); s.cases[i].Session || !s.plan.Strict && i > 0 { // without the plain login there is nothing to compare with
			err = nil
		}
		return r, err
	}}
}

// observe carries out case i.
func (s *survey) observe(ctx context.Context, i int, lane *Lane) (r record.Reading, err error) {
	c, ends, watched := s.cases[i], *s.ends, (*Login)(nil)
	watch := func() error { watched, err = ends.Watch(ctx, c.Argv); return err }
	if lane != nil {
		c, r.Core, ends.Dir = lane.moved(c), &lane.core, lane.dir
	}
	if r.Start = time.Now().UTC(); lane != nil {
		err = proc.OnCore(lane.core, watch)
	} else {
		err = watch()
	}
	if watched != nil {
		r.WallNS, r.ClientCPUNS, r.Phases = watched.Whole, &watched.ClientCPU, watched.Spans
	}
	if c.After != nil {
		c.After(ctx, &r)
	}
	return r, err
}

// Fit returns the reason why cases cannot continue a result; nil is none.
func Fit(cases []Case, result *record.File) error {
	if result == nil {
		return nil
	}
	if !slices.EqualFunc(result.Logins(), kinds(cases, Plan{}), record.Subject.Same) {
		return errors.New("its kinds of login differ from those that would be measured now")
	}
	return nil
}

// Distinct returns the number of logins in a round of cases.
func Distinct(cases []Case) (n int) {
	for _, k := range kinds(cases, Plan{}) {
		if k.Like == 0 {
			n++
		}
	}
	return n
}
