package sched

import (
	"fmt"
	"iter"
	"time"
)

// Rounds says how often something is repeated: so many times, and with a budget as often as
// fits into it, but never less often.
type Rounds struct {
	Count  int
	Budget time.Duration
}

// Each numbers the rounds from 0. None that the budget adds begins where the longest so far would end
// later.
func (r Rounds) Each() iter.Seq[int] {
	return func(yield func(int) bool) {
		longest, began := time.Duration(0), time.Now()
		for i := 0; i < r.Count || r.Budget > 0 && time.Since(began)+longest <= r.Budget; i++ {
			start := time.Now()
			if !yield(i) {
				return
			}
			longest = max(longest, time.Since(start))
		}
	}
}

// String is how many there are, as far as that is known.
func (r Rounds) String() string {
	if r.Budget > 0 {
		return "those of " + r.Budget.String()
	}
	return fmt.Sprint(r.Count)
}
