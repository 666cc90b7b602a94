//go:build linux

package handshake

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/wait"
	"sshpace/internal/record"
)

// Survey carries out cases. What fails is not tried again. When ctx ends, the
// results so far are returned with its error; there are none before every case was
// carried out once.
func (e *Ends) Survey(ctx context.Context, cases []Case, p Plan) ([]Result, error) {
	s := &survey{ends: e, cases: cases, alike: alike(cases), plan: p, made: make([]int, len(cases)), failures: make([]error, len(cases))}
	if p.Note == nil {
		s.plan.Note = func(record.Record) error { return nil }
	}
	err := s.kinds()
	if err == nil {
		err = s.rounds(ctx)
	}
	if err != nil && slices.ContainsFunc(s.alike, func(of kindOf) bool { return s.made[of] == 0 }) {
		return nil, err
	}
	out := summarized(cases, s.alike, s.of, s.logins)
	for i, of := range s.alike {
		if failure := s.failures[of]; failure != nil {
			out[i].Failure = failure.Error()
		}
	}
	return out, err
}

// survey is a Survey under way.
type survey struct {
	ends     *Ends
	cases    []Case
	alike    []kindOf // whose logins count for each case
	plan     Plan
	logins   []*observed // in the order of time
	of       []kindOf    // each of these
	made     []int       // logins of each kind
	tried    bool
	failures []error
}

func (s *survey) rounds(ctx context.Context) error {
	order := rand.New(rand.NewPCG(s.plan.Seed, 0))
	began := time.Now()
	for n := 1; ; n++ {
		for _, i := range order.Perm(len(s.cases)) {
			if s.alike[i] != i {
				continue
			}
			if err := s.login(ctx, i); err != nil {
				return err
			}
		}
		spent := time.Since(began)
		if s.plan.Rounds > 0 && n >= s.plan.Rounds || s.plan.Rounds == 0 && n > 1 && spent+spent/time.Duration(n) > s.plan.Budget {
			return nil
		}
	}
}

// login carries out case i once.
func (s *survey) login(ctx context.Context, i int) error {
	if s.failures[i] != nil {
		return nil
	}
	if s.tried && !wait.For(ctx, s.plan.Pause) {
		return context.Canceled
	}
	s.tried = true
	began := time.Now()
	l, err := s.ends.Watch(ctx, s.cases[i].Argv)
	o := &observed{Login: l}
	if s.cases[i].After != nil {
		o.server, o.wire = s.cases[i].After(ctx)
	}
	failed := (*FailedError)(nil)
	if !errors.As(err, &failed) && err != nil {
		return err
	}
	if noted := s.plan.Note(record.Record{LoginRun: o.record(i+1, began, err)}); noted != nil {
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
