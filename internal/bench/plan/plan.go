// Package plan decides what to measure next. A plan is pure: it has no clock, no I/O and no
// randomness but its seed, so the same history leads to the same next step. It hands out steps
// (Next), learns from their results (Opened, Moved, Lost, Observe), and always ends. The slices
// that it judges by are those of the file that the run writes.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Plan is the course of a run, step by step.
type Plan interface {
	// Next returns the next step, or false when the plan has ended. elapsed is the measuring time
	// so far, and fresh are the slices that the file does not have yet.
	Next(elapsed time.Duration, fresh record.Slices) (Step, bool)
	// Opened reports the end of a connection's login.
	Opened(record.Trial, record.Sample)
	// Moved reports the result of a turn.
	Moved(Step, record.Slice)
	// Lost reports that a connection ended by itself.
	Lost(record.Trial)
	// Observe reports the result of a trial with its own connection.
	Observe(record.Trial, record.Sample)
	// Begin teaches the plan the content of the run's file, which the run adds to from then on. A
	// plan without it knows no slices.
	Begin(*record.File)
	// Progress reports the state after the last step.
	Progress() Progress
	// Estimate is the measuring time that the whole plan takes.
	Estimate() time.Duration
	// NeverWorked names a workload that was tried and never worked, whatever else was measured.
	NeverWorked() (what string, never bool)
	// End returns the reason of the plan's end; "" while it has not ended, or if it was
	// interrupted.
	End() Ending
}

// Action is the work of a step.
type Action int

// The actions.
const (
	Open   Action = iota // open the connections of Trials, several at a time
	Turn                 // let the connection of Trials[0] move data
	Single               // carry Trials[0] out by itself: a login, a copy
	Close                // close the connections of Trials
)

// Step is one step of a plan. Its trials have their IDs.
type Step struct {
	Action  Action
	Trials  []record.Trial
	Length  time.Duration // of a turn: how much CPU time its bytes may cost the costlier side
	Long    bool          // a turn that is for throughput
	Round   int           // of a turn
	Sitting int           // of a turn
}

// Ending is the reason of a plan's end; "" while it has not ended.
type Ending string

// The endings.
const (
	EndBudget      Ending = "budget"      // the measuring time is spent
	EndPrecision   Ending = "precision"   // every interval is as narrow as asked
	EndComplete    Ending = "complete"    // every planned trial is done
	EndFailures    Ending = "failures"    // too many trials failed in a row
	EndInterrupted Ending = "interrupted" // the user stopped it
)

// Record returns the ending as a record.
func (e Ending) Record() record.Record { return &record.End{Why: string(e)} }

// Progress says how far a plan is, for a live view.
type Progress struct {
	Phase     string        // the present work, in two or three words
	Round     int           // the current one, from 1
	Done      int           // cells that have a result
	Total     int           // cells
	Failed    int           // cells that never worked
	Remaining time.Duration // estimated measuring time
	Ranked    bool          // every cell is measured or predicted: a ranking would be complete
}

// Limits that make every plan end.
const (
	maxAttempts = 3  // failures of one trial in a round, and of a cell that never worked
	maxStart    = 8  // failures before anything worked
	maxInARow   = 24 // failures in a row
)

// Environment describes the place where a plan is carried out.
type Environment struct {
	Cores     int           // that client and server may use together; 0: unknown
	Capacity  int           // connections that may be open at a time; at least 2 are
	Login     time.Duration // that a user's host takes; 0: unknown
	RoundTrip time.Duration // to a user's host; 0: unknown
	Kept      int           // logins to a user's host that are reserved for the time after the plan
}

// BudgetError is a budget that leaves no time for an answer.
type BudgetError struct{ Budget, Least, Login time.Duration }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("%s is too short to compare anything on this host", e.Budget)
}

// ErrNothing says that a campaign leaves nothing to measure.
var ErrNothing = errors.New("nothing to measure: no cipher, MAC or key exchange is left; allow more algorithms")

// Defaults of a campaign that sets neither budget nor rounds.
const (
	defaultBudget   = 90 * time.Second
	precisionBudget = 10 * time.Minute // where a precision ends the plan
)

// New plans a campaign: copies of every combination if it has a size for them, otherwise
// connections that take turns.
func New(c record.Campaign, env Environment) (Plan, error) {
	d := design{Campaign: c, env: env, space: alg.Fold(c.Offer), bulkKex: firstOf(c.Offer.Kex, alg.CheapKex)}
	if c.Server == record.ServerRemote && slices.Contains(c.Offer.Kex, c.Present.Kex) {
		d.bulkKex = c.Present.Kex // its logins count
	}
	if len(d.Directions) == 0 {
		d.Directions = []record.Direction{record.Upload}
	}
	switch {
	case c.BudgetNS < 0 || c.Precision < 0 || c.Rounds < 0:
		return nil, fmt.Errorf("budget, precision and rounds may not be negative")
	case d.bulkKex == "" || len(d.space.Bulk) == 0:
		return nil, ErrNothing
	case c.SizeBytes > 0:
		return newCopies(d), nil
	case c.Rounds == 0 && c.BudgetNS == 0 && c.Precision > 0:
		d.BudgetNS = precisionBudget
	case c.Rounds == 0 && c.BudgetNS == 0:
		d.BudgetNS = defaultBudget
	}
	if d.Server == record.ServerRemote {
		p := newPaired(d)
		if least := p.least(); d.BudgetNS > 0 && d.BudgetNS < least {
			return nil, &BudgetError{d.BudgetNS, least, p.env.Login}
		}
		return p, nil
	}
	return newSitting(d), nil
}

// design is a campaign and the choices that follow from it.
type design struct {
	record.Campaign
	env     Environment
	space   alg.Space
	bulkKex string // key exchange of all connections that move data, without influence on the result
}

// cells counts the cells to rank.
func (d *design) cells() int { return len(d.space.Bulk)*len(d.Directions) + len(d.space.Kex) }

// computations returns the computations of all cells.
func (d *design) computations() (cells []alg.Suite) {
	for _, cell := range d.space.Bulk {
		cells = append(cells, cell.Computation())
	}
	return cells
}

// firstOf returns the first wanted name that is offered, or the first offered.
func firstOf(offered, wanted []string) string {
	for _, name := range wanted {
		if slices.Contains(offered, name) {
			return name
		}
	}
	if len(offered) > 0 {
		return offered[0]
	}
	return ""
}

// reference returns the cell that is open in every sitting: on a host the present suite, otherwise
// one that is fast and widespread.
func (d *design) reference() alg.Suite {
	is := func(wanted alg.Suite) func(alg.Suite) bool {
		return func(c alg.Suite) bool { return c.Computation() == wanted.Computation() }
	}
	if i := slices.IndexFunc(d.space.Bulk, is(d.Present)); i >= 0 && d.Server == record.ServerRemote {
		return d.space.Bulk[i]
	}
	for _, cipher := range []string{"aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "chacha20-poly1305@openssh.com", "aes128-ctr"} {
		if i := slices.IndexFunc(d.space.Bulk, func(c alg.Suite) bool { return c.Cipher == cipher }); i >= 0 {
			return d.space.Bulk[i]
		}
	}
	return d.space.Bulk[0]
}

// allowed reports whether the campaign's policy, or the default one, allows a cell in the advice.
func (d *design) allowed(cell alg.Suite) bool {
	if d.All {
		return true
	}
	name := cmp.Or(d.Policy, "modern")
	policy, err := alg.LookupPolicy(name)
	return err == nil && policy.Allows(alg.Cipher, cell.Cipher) && (cell.MAC == "" || policy.Allows(alg.MAC, cell.MAC)) &&
		(name != "modern" || cell.Status() == alg.Strong)
}

// unconnected reports whether a trial ended before any algorithm was negotiated: servers that limit
// connections refuse some at random (sshd_config(5) MaxStartups), whatever they would have offered.
func unconnected(s record.Sample) bool {
	return s.Outcome == record.Refused || s.Outcome == record.TimedOut && s.Got == (alg.Suite{})
}

// saturated converts nanoseconds to a duration, or returns the longest one.
func saturated(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
