package sched

import (
	"fmt"
	"iter"
	"time"
)

// Rounds says how often something is repeated: so many times, and with a budget until
// that is over, but never less often.
type Rounds struct {
	Count  int
	Budget time.Duration
}

// Each numbers the rounds from 0.
func (r Rounds) Each() iter.Seq[int] {
	return func(yield func(int) bool) {
		for began, i := time.Now(), 0; i < r.Count || time.Since(began) < r.Budget; i++ {
			if !yield(i) {
				return
			}
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
