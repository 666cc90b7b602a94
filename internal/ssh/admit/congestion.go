package admit

import (
	"cmp"
	"slices"
	"time"

	"sshpace/internal/base/sched"
)

// congestion estimates the best number of simultaneous logins from their times. Where one machine
// serves many of the hosts, or the network or this machine is full, more at once only make each of
// them slower, until they run out of time; TCP Vegas (Brakmo and Peterson, 1995) has the rule, see
// sched.BestInFlight.
//
// A host is logged into once, so it has no best time of its own to compare with. Compared is the
// part that no distance explains, in the median of a round of logins, with the least of such
// medians.
type congestion struct {
	alone time.Duration // that part, with few simultaneous logins
	round []sample
	load  int // sum of the simultaneous logins of each of round
	began time.Time
}

// sample is the time until a server showed its key. The rest of a login depends on PAM, agents and
// people.
type sample struct {
	admitted  time.Time
	roundTrip time.Duration // to the server; 0 = not known
	keys      time.Duration // from the connection on
}

const (
	// usuallyAlone is more than most servers take, while nothing is known.
	usuallyAlone = 500 * time.Millisecond
	longAlone    = time.Second
	leastRound   = 16
)

// network is the part explained by distance: one round trip each for the version line and the key
// exchange.
func (l sample) network() time.Duration { return 2 * l.roundTrip }

// own is the part of the server, and of other work on it.
func (l sample) own() time.Duration { return max(l.keys-l.network(), 0) }

// slower is the time relative to that with few simultaneous logins.
func (c *congestion) slower(l sample) float64 {
	return float64(l.keys) / float64(l.network()+c.alone)
}

// near reports whether that is less than twice, and is not long by itself.
func (c *congestion) near(l sample) bool {
	return l.keys <= 2*(l.network()+min(c.alone, longAlone))
}

// add adds a login and the number of simultaneous logins. After each round, which is size logins
// that began after the round before, it estimates the best number.
func (c *congestion) add(l sample, underWay, size int) (estimate float64, known bool) {
	if l.admitted.Before(c.began) {
		return 0, false
	}
	c.round, c.load = append(c.round, l), c.load+underWay
	if len(c.round) < size {
		return 0, false
	}
	underWay = c.load / len(c.round)
	own := max(c.median(func(l sample) float64 { return float64(l.own()) }).own(), 1)
	if own < c.alone || underWay <= fewLogins { // so few do not wait for each other
		c.alone = own
	}
	middle := c.median(c.slower)
	c.round, c.load, c.began = c.round[:0], 0, time.Now()
	return float64(sched.BestInFlight(underWay, middle.network()+c.alone, max(middle.keys, 1))), true
}

// median returns the middle login of the round by a number.
func (c *congestion) median(by func(sample) float64) sample {
	slices.SortFunc(c.round, func(a, b sample) int { return cmp.Compare(by(a), by(b)) })
	return c.round[len(c.round)/2]
}
