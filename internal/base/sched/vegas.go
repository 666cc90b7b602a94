package sched

import "time"

// Worth is how much is worth having under way where something took so long to be
// answered, when under were under way, and takes quickest when little is: twice what
// is answered in that time.
func Worth(under int, quickest, took time.Duration) int {
	return int(2 * float64(under) * float64(quickest) / float64(took))
}

// Way is what is known of the way to a receiver. The zero value knows nothing.
type Vegas struct {
	quickest time.Duration // what the way alone takes
}

// Worth is how many bytes are worth having under way, by a piece that took so long to be
// answered, when under bytes were under way.
func (w *Vegas) Worth(under int, took time.Duration) int {
	took = max(took, 1)
	if w.quickest == 0 || took < w.quickest {
		w.quickest = took
	}
	return Worth(under, w.quickest, took)
}
