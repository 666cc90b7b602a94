package sched

import "time"

// Worth returns how many requests to keep in flight, by a request that was answered after took
// while under of them were in flight; quickest is the time with few in flight. The result is twice
// the number that is answered within quickest.
func Worth(under int, quickest, took time.Duration) int {
	return int(2 * float64(under) * float64(quickest) / float64(took))
}

// Vegas estimates the bytes to keep in flight on the path to a receiver. The zero value knows
// nothing.
type Vegas struct {
	quickest time.Duration // time that the path alone takes
}

// Worth returns how many bytes to keep in flight, by a piece that was answered after took while
// under bytes were in flight.
func (w *Vegas) Worth(under int, took time.Duration) int {
	took = max(took, 1)
	if w.quickest == 0 || took < w.quickest {
		w.quickest = took
	}
	return Worth(under, w.quickest, took)
}
