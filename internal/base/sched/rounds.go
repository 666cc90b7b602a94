package sched

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Rounds says how often something is repeated: so many times, and with a budget as often as
// fits into it, but never less often.
type Rounds struct {
	Count  int
	Budget time.Duration
}

// Progress is a round of them in words, as far as it is known how many there are.
func (r Rounds) Progress(round int) string {
	if r.Budget > 0 {
		return fmt.Sprintf("round %d (%s in all)", round, r.Budget)
	}
	return fmt.Sprintf("round %d of %d", round, r.Count)
}

// Left is Progress with how much longer it takes all rounds to be made, where those before this one
// took so long, and usual is what one takes.
func (r Rounds) Left(round int, spent, usual time.Duration) string {
	if r.Budget > 0 {
		return r.Progress(round)
	}
	if round > 1 {
		usual = spent / time.Duration(round-1)
	}
	return fmt.Sprintf("%s, about %s left", r.Progress(round), Roughly(time.Duration(r.Count-round+1)*usual))
}

// Roughly is a duration in words, as an estimate has it.
func Roughly(d time.Duration) string {
	if d < 90*time.Second {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// Loop measures in rounds: what is due in a round takes its turn in random order, so that what
// slows a machine for a while slows all of it alike. Its driver says what is due and what a turn
// is; the loop says which is next, and when it is over.
type Loop[T any] struct {
	Rounds
	Seed  uint64                        // of the order
	Made  int                           // rounds that were made before, where this goes on with them
	Spent time.Duration                 // of the budget, on those
	Due   func(round int) []T           // in a round, which counts from 0; nothing ends the loop
	Take  func(round int, turn T) error // an error ends it, too
	// After follows a round whose turns took so long, with so much of the budget left; nil: nothing
	// does.
	After func(took, left time.Duration) error
}

// Run carries it out, until the turn in which drain ends. No round that the budget adds begins
// where the longest so far would end later.
func (l Loop[T]) Run(drain context.Context) error {
	longest, began := time.Duration(0), time.Now().Add(-l.Spent)
	for n := l.Made; drain.Err() == nil && (n < l.Count || l.Budget > 0 && time.Since(began)+longest <= l.Budget); n++ {
		due, start := l.Due(n), time.Now()
		if len(due) == 0 {
			return nil
		}
		for _, turn := range Shuffled(l.Seed, n, due) {
			if drain.Err() != nil {
				return nil
			}
			if err := l.Take(n, turn); err != nil {
				return err
			}
		}
		took := time.Since(start)
		longest = max(longest, took)
		if l.After != nil {
			if err := l.After(took, l.Budget-time.Since(began)); err != nil {
				return err
			}
		}
	}
	return nil
}

// Shuffled is a random order, the same one for a seed and the number of a round.
func Shuffled[T any](seed uint64, round int, of []T) []T {
	all := slices.Clone(of)
	rand.New(rand.NewPCG(seed, uint64(round))).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
