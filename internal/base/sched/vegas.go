package sched

import "time"

// BestInFlight returns how many requests to keep in flight, by a request that was answered after
// took while inFlight of them were in flight; quickest is the time with few in flight. The result
// is twice the number that is answered within quickest.
func BestInFlight(inFlight int, quickest, took time.Duration) int {
	return int(2 * float64(inFlight) * float64(quickest) / float64(took))
}

// UsualRate in bytes per second is what a path is expected to carry until more is known: one that
// is slower has as much in flight for a moment, a faster one learns in a few round trips.
const UsualRate = 256e6

// Vegas estimates the bytes to keep in flight on the path to a receiver. The zero value knows
// nothing.
type Vegas struct {
	quickest time.Duration // time that the path alone takes
}

// BestInFlight returns how many bytes to keep in flight, by a piece that was answered after took
// while inFlight bytes were in flight.
func (w *Vegas) BestInFlight(inFlight int, took time.Duration) int {
	took = max(took, 1)
	if w.quickest == 0 || took < w.quickest {
		w.quickest = took
	}
	return BestInFlight(inFlight, w.quickest, took)
}

// Quickest returns the shortest time so far, 0 before the first answer.
func (w *Vegas) Quickest() time.Duration { return w.quickest }
