package admit

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// Back-off between attempts that were turned away: doubling, with jitter so that a thousand hosts
// do not come back together.
const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 2 * time.Second
)

// How long a host is tried again, unless Limits set it: a server that has accepted somebody is
// busy, one that accepts nobody may never do.
const (
	retryBusy   = 2 * time.Minute
	retryClosed = 30 * time.Second

	// A port that refuses is tried again for that long while servers seem to restart: it has
	// accepted somebody before, or connections were lost a moment ago.
	retryRestart  = 10 * time.Second
	restartNotice = 10 * time.Second

	// A host that timed out among others is tried again that often, each time after all waiting
	// ones, and with fewer at once. Without others, it is tried again until it was alone.
	retryOvertaken = 3
)

// attempts holds the ends of one host's attempts.
type attempts struct {
	ending     Ending // of the last one
	late       bool   // it was, because of others
	inARow     int    // that did not end with Done
	backedOff  time.Duration
	overtaken  int
	concurrent int // simultaneous logins when the last late one began
}

func (a *attempts) add(e Ending, late lateness, concurrent int) {
	if a.ending, a.late = e, late == crowded || late == overtaken; e == Done {
		a.inARow, a.backedOff = 0, 0
		return
	}
	a.inARow++
	if !a.late {
		return
	}
	if late == overtaken || a.concurrent > 0 && 4*concurrent >= 3*a.concurrent {
		a.overtaken++ // also where there were not fewer
	}
	a.concurrent = concurrent
}

// again reports whether a host may be tried again, and how long it waits until then.
func (t *Ticket) again() (after time.Duration, again bool) {
	a, limits := &t.attempts, &t.limits
	accepted := t.slot != nil && t.slot.server.accepted()
	restarting := a.ending&Refused != 0 && (accepted || t.gate.restarting())
	limit := limits.RetryFor
	switch {
	case a.late:
		return limits.spread(firstBackoff), a.overtaken <= retryOvertaken
	case limits.RetryDown && a.ending&Down != 0:
		return limits.backoff(a.inARow), time.Since(t.began) < limit
	case a.ending&TurnedAway == 0 && !restarting:
		return 0, false
	case limits.Tries > 0:
		return limits.backoff(a.inARow), a.inARow < limits.Tries
	case limit != 0:
	case restarting:
		limit = retryRestart
	case accepted:
		limit = retryBusy
	default:
		limit = retryClosed
	}
	return limits.backoff(a.inARow), a.backedOff <= limit
}

// backoff returns the wait after that many attempts in a row.
func (l *Limits) backoff(attempts int) time.Duration {
	return l.spread(min(cmp.Or(l.Backoff, firstBackoff)<<min(attempts-1, 16), cmp.Or(l.MaxBackoff, lastBackoff)))
}

// spread randomizes a wait, so that a thousand hosts do not come back together; one host alone
// needs no such care.
func (l *Limits) spread(d time.Duration) time.Duration {
	if l.Backoff > 0 {
		return d
	}
	return d/2 + rand.N(d)
}
