// Package admit decides who may log in now, and when a host is tried again. Every login to a user's
// host asks a Gate first: the gate bounds the simultaneous logins, at each server and in all, and
// learns from each how many the servers, the network and this machine can handle.
//
// A login here is an unauthenticated connection, which sshd limits (MaxStartups, sshd_config(5))
// and which costs CPU at both ends. Connections after the login do not matter here.
package admit

import (
	"context"
	"sync"
	"time"

	"sshpace/internal/base/sched"
)

// Limits are the limits of a gate that it does not learn. Each zero field is a default for many
// hosts.
type Limits struct {
	// Most bounds the simultaneous logins; 0 is as many as servers and this machine can handle.
	Most int
	// Apart is the time from the end of a login at a server to the beginning of the next one there;
	// 0 is none.
	Apart time.Duration
	// Backoff is how long a host waits after it was turned away, doubled each time up to
	// MaxBackoff; 0 is a tenth of a second up to two seconds, with jitter.
	Backoff, MaxBackoff time.Duration
	// Tries bounds the attempts in a row of one host that are turned away; 0 is none.
	Tries int
	// RetryFor bounds how long one host waits in all for another try; 0 is two minutes, or 30
	// seconds if the server has accepted nobody, and a negative value means no retries.
	RetryFor time.Duration
	// RetryDown retries hosts that are down, for RetryFor in all.
	RetryDown bool
}

// A measurement logs in to one host many times. Its logins are few: a server may count them, and
// mistake many for an attack (sshd_config(5) PerSourcePenalties).
const (
	HostPause   = time.Second            // between two logins
	ShortPause  = 100 * time.Millisecond // between two of no more than MostLogins
	MostRefused = 8                      // in a row; with a host that drops 3 of 10, as MaxStartups may, one login in 15,000 reaches that many

	loginsAtFirst = 12
	loginsEvery   = 20 * time.Second // as many more after each such time
)

// OneByOne are the limits of a measurement of a host: one login at a time, that far apart.
func OneByOne(apart time.Duration) Limits {
	return Limits{Most: 1, Apart: apart, Backoff: time.Second, MaxBackoff: 4 * time.Second, Tries: MostRefused}
}

// MostLogins returns the most logins of a measurement to a host in that time, the first one
// included.
func MostLogins(elapsed time.Duration) int {
	return max(loginsAtFirst, int(loginsAtFirst*elapsed/loginsEvery))
}

// Ticket makes a ticket for one host.
func (g *Gate) Ticket() *Ticket { return &Ticket{gate: g, limits: g.Limits, began: time.Now()} }

// Retrying makes a ticket for one host with limits of its own; see Limits.
func (g *Gate) Retrying(retryFor time.Duration, retryDown bool) *Ticket {
	t := g.Ticket()
	t.limits.RetryFor, t.limits.RetryDown = retryFor, retryDown
	return t
}

// ConnectionLost reports that a server has ended a connection after its login: servers may be
// restarting, so that for some seconds ports that refuse are tried again.
func (g *Gate) ConnectionLost() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lostAt = time.Now()
}

// Ticket is the permission of one host to log in, one login at a time and as often as it needs. Its
// methods are listed in the order of a login, and may be called concurrently.
type Ticket struct {
	gate   *Gate
	limits Limits
	began  time.Time

	mu       sync.Mutex
	slot     *slot     // of the running or the last login; nil before the first
	sample   sample    // facts about that login
	next     time.Time // when the host may be tried again
	attempts attempts
}

// Admit waits until a login at addr ("ip:port", or any other name of one server) may begin. It
// returns ctx's cause if that ends first. A running login of this ticket is ended as by End(Done),
// because its place may be the one that is waited for; "" ends it and admits no other. A nil ticket
// admits at once.
func (t *Ticket) Admit(ctx context.Context, addr string) error {
	if t == nil {
		return context.Cause(ctx)
	}
	t.leave(Done)
	if addr == "" {
		return context.Cause(ctx)
	}
	t.mu.Lock()
	next := t.next
	t.mu.Unlock()
	if !wait(ctx, next) {
		return context.Cause(ctx)
	}
	s, err := t.gate.admit(ctx, addr)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.slot, t.sample.admitted = s, s.admitted
	s.lend = time.AfterFunc(t.gate.lendAfter(preparing), func() { t.lendOut(s) })
	return nil
}

// wait waits for a point in time; it returns false if ctx ends earlier.
func wait(ctx context.Context, at time.Time) bool {
	return !at.After(time.Now()) || sched.Until(ctx, at)
}

// Reached reports that the login has reached a stage; stages may be left out but not go back.
func (t *Ticket) Reached(s Stage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slot.open() && s > t.slot.stage {
		t.gate.reached(t.slot, s)
	}
}

// KeyShown reports that the server has shown its host key, took after the connection; roundTrip is
// that to the server, by its kernel's answers, or 0 if it is unknown.
func (t *Ticket) KeyShown(took, roundTrip time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.slot.open() {
		t.sample.keys, t.sample.roundTrip = took, roundTrip
		t.gate.learn(t.sample)
	}
}

// Near reports whether the login is about as quick as it would be among few others, so that a
// packet that is sent now is answered soon. It is false where hosts that are down are retried: if a
// command has left with a login that the server ends, nobody knows whether it runs.
func (t *Ticket) Near() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.limits.RetryDown && t.gate.near(t.sample)
}

// LoggedIn reports that the login has succeeded. The attempt continues until End.
func (t *Ticket) LoggedIn() { t.leave(loggedIn) }

// End ends an attempt, with or without a login, and lets everybody learn from it. A nil ticket
// learns nothing.
func (t *Ticket) End(e Ending) {
	if t == nil {
		return
	}
	late, concurrent := t.leave(e)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sample = sample{}
	t.attempts.add(e, late, concurrent)
}

// Again reports whether the host may be tried again after its last End, and how long it waits until
// then. Admit waits by itself; a caller that does something else meanwhile waits before. The caller
// makes sure that nothing has run.
func (t *Ticket) Again() (after time.Duration, again bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if after, again = t.again(); again {
		t.attempts.backedOff += after
		t.next = time.Now().Add(after)
	}
	return after, again
}

// Ending describes the end of an attempt, as far as others learn from it; several may be true of
// one.
type Ending uint8

// The endings.
const (
	TurnedAway Ending = 1 << iota // the server, or this machine, could not take the connection now
	Overdue                       // the server took the connection, and was not done in time
	Refused                       // the port refuses
	Down                          // the host took no connection, or ended the login without an answer, like one that boots
	loggedIn                      // a login, not the attempt

	Done Ending = 0 // after the login, or for a reason unrelated to load
)
