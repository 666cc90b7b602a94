package admit

import (
	"cmp"
	"slices"
	"time"

	"sshpace/internal/base/sched"
)

// crowd estimates from the time that logins take how many at once are best. Where one
// machine serves many of the hosts, or the network or this machine is full, more at
// once only make each of them slower, until they run out of time; TCP Vegas (Brakmo and
// Peterson, 1995) has the rule, see sched.Worth.
//
// A host is logged into once, so there is no best time of its own to compare with.
// Compared is the part that no distance explains, in the median of a round of logins,
// with the least of such medians.
type crowd struct {
	alone time.Duration // that part, with few under way
	round []sample
	load  int // sum of the logins under way at each of round
	began time.Time
}

// sample is how long a server took until it showed its key. The rest of a login
// depends on PAM, agents and people.
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

// network is the part that distance explains: a round trip each for the version line and the keys.
func (l sample) network() time.Duration { return 2 * l.roundTrip }

// own is the part of the server, and of who keeps it busy.
func (l sample) own() time.Duration { return max(l.keys-l.network(), 0) }

// slower is how many times as long it took as with few under way.
func (c *crowd) slower(l sample) float64 {
	return float64(l.keys) / float64(l.network()+c.alone)
}

// near reports whether that is less than twice, and is not long by itself.
func (c *crowd) near(l sample) bool {
	return l.keys <= 2*(l.network()+min(c.alone, longAlone))
}

// add takes a login and the number of logins under way then. After each round, which are size
// logins that began after the round before, it estimates how many at once are best.
func (c *crowd) add(l sample, underWay, size int) (estimate float64, known bool) {
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
	return float64(sched.Worth(underWay, middle.network()+c.alone, max(middle.keys, 1))), true
}

// median is the login of the round that is in the middle by a number.
func (c *crowd) median(by func(sample) float64) sample {
	slices.SortFunc(c.round, func(a, b sample) int { return cmp.Compare(by(a), by(b)) })
	return c.round[len(c.round)/2]
}
