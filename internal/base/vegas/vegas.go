// Package vegas tells how much data is worth having under way, as TCP Vegas does
// (Brakmo and Peterson, 1995): what a receiver has not come to yet makes nothing
// faster than what one round trip needs, and is kept somewhere at a cost.
package vegas

import "time"

// Way is what is known of the way to a receiver. The zero value knows nothing.
type Way struct {
	quickest time.Duration // what the way alone takes
}

// Worth is how many bytes are worth having under way, by a piece that took so long to be
// answered, when under bytes were under way: twice what arrives in the time of the
// quickest answer so far.
func (w *Way) Worth(under int, took time.Duration) int {
	took = max(took, 1)
	if w.quickest == 0 || took < w.quickest {
		w.quickest = took
	}
	return int(2 * float64(under) * float64(w.quickest) / float64(took))
}
