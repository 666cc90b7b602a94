package sched

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Rounds is the number of repetitions: Least of them, and with a budget as many more as fit into
// it.
type Rounds struct {
	Count  int
	Budget time.Duration
}

// Progress describes a round in words: its number, and the total as far as it is known.
func (r Rounds) Progress(round int) string {
	if r.Budget > 0 {
		return fmt.Sprintf("round %d (%s in all)", round, r.Budget)
	}
	return fmt.Sprintf("round %d of %d", round, r.Count)
}

// Left is Progress with the remaining time of all rounds. spent is the time of the rounds before
// this one; usual is the time of one.
func (r Rounds) Left(round int, spent, usual time.Duration) string {
	if r.Budget > 0 {
		return r.Progress(round)
	}
	if round > 1 {
		usual = spent / time.Duration(round-1)
	}
	return fmt.Sprintf("%s, about %s left", r.Progress(round), Roughly(time.Duration(r.Count-round+1)*usual))
}

// Roughly words a duration as an estimate.
func Roughly(d time.Duration) string {
	if d < 90*time.Second {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// Loop measures in rounds: the turns of a round run in random order, so that a temporary slowdown
// of the machine hits all of them alike. Its driver lists the turns and carries each out; the loop
// picks the next one and decides when to stop.
type Loop[T any] struct {
	Rounds
	Seed  uint64                        // of the order
	Made  int                           // rounds made earlier, which this run continues
	Spent time.Duration                 // of the budget, on those
	Due   func(round int) []T           // in a round, which counts from 0; nothing ends the loop
	Take  func(round int, turn T) error // an error ends it, too
	// After is called after each round with the time of its turns and the rest of the budget; nil:
	// nothing is called.
	After func(took, left time.Duration) error
}

// Run carries the loop out, until the turn in which drain ends. Rounds that only the budget adds do
// not begin if the longest round so far would not fit.
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

// Shuffled returns the elements in random order; the order depends on the seed and the number of
// the round alone.
func Shuffled[T any](seed uint64, round int, of []T) []T {
	all := slices.Clone(of)
	rand.New(rand.NewPCG(seed, uint64(round))).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
