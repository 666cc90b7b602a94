package fleet

import (
	"cmp"
	"slices"
	"time"

	"sshpace/internal/base/sched"
)

// crowd tells from how long logins take how many are worth having under way. Where one
// machine serves many of the hosts, or the network or this machine is full, more at
// once only make each of them slower, until they run out of time; TCP Vegas (Brakmo and
// Peterson, 1995) has the rule, see sched.Worth.
//
// A host is logged into once, so there is no best time of its own to compare with.
// Compared is the part that no distance explains, in the median of a round of logins,
// with the least of such medians.
type crowd struct {
	alone time.Duration // that part, with few under way
	round []login
	under int // sum of what was under way at each of round
	began time.Time
}

// login is how long a server took until it showed its key. What comes after that
// depends on PAM, agents and people.
type login struct {
	admitted time.Time
	distance time.Duration // a round trip to the server; 0 = not known
	keys     time.Duration // from the connection on
}

const (
	// usuallyAlone is more than most servers take, while nothing is known.
	usuallyAlone = 500 * time.Millisecond
	longAlone    = time.Second
	leastRound   = 16
)

// way is what distance explains: a round trip each for the version line and the keys.
func (l login) way() time.Duration { return 2 * l.distance }

// own is the part of the server, and of who keeps it busy.
func (l login) own() time.Duration { return max(l.keys-l.way(), 0) }

// slower is how many times as long it took as with few under way.
func (c *crowd) slower(l login) float64 {
	return float64(l.keys) / float64(l.way()+c.alone)
}

// near tells whether that is less than twice, and is not long by itself.
func (c *crowd) near(l login) bool {
	return l.keys <= 2*(l.way()+min(c.alone, longAlone))
}

// add takes a login that had so many under way beside it. After a round, which are size
// logins that began after the round before, it is known how many are worth it.
func (c *crowd) add(l login, under, size int) (worth float64, known bool) {
	if l.admitted.Before(c.began) {
		return 0, false
	}
	c.round, c.under = append(c.round, l), c.under+under
	if len(c.round) < size {
		return 0, false
	}
	under = c.under / len(c.round)
	own := max(c.median(func(l login) float64 { return float64(l.own()) }).own(), 1)
	if own < c.alone || under <= fewLogins { // so few do not wait for each other
		c.alone = own
	}
	middle := c.median(c.slower)
	c.round, c.under, c.began = c.round[:0], 0, time.Now()
	return float64(sched.Worth(under, middle.way()+c.alone, max(middle.keys, 1))), true
}

// median is the login of the round that is in the middle by a number.
func (c *crowd) median(by func(login) float64) login {
	slices.SortFunc(c.round, func(a, b login) int { return cmp.Compare(by(a), by(b)) })
	return c.round[len(c.round)/2]
}
