package keep

import (
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
)

// A lost host is tried again after a second, then after ever longer times.
const (
	firstTry = time.Second
	lastTry  = 5 * time.Minute
	// retryBusy is how long hosts that are too busy are retried at once.
	retryBusy = 20 * time.Second
)

// backoff returns the time until a lost host is tried again, after some tries; hosts that were lost
// together come back apart.
func backoff(tries int) time.Duration {
	d := lastTry
	if tries < 10 {
		d = min(firstTry<<tries, lastTry)
	}
	return d/2 + rand.N(d/2+1)
}

// Hold holds the connections until the last one has ended for good, or the context of New, or the
// time of For is over.
func (k *Keeper) Hold() {
	k.tasks.Go(k.guard)
	for k.life.Err() == nil {
		k.dropIdle()
		due, next, any := k.due()
		switch {
		case !any:
			k.end()
		case len(due) > 0:
			k.back(due)
		default:
			k.wait(next)
		}
	}
}

// Close ends all connections, and waits for their ends.
func (k *Keeper) Close() {
	k.end()
	k.tasks.Wait()
}

// lookAgain is how long a wait lasts at most: a computer may have slept meanwhile.
const lookAgain = 20 * time.Second

// wait waits until something has changed, or the time has come.
func (k *Keeper) wait(next time.Time) {
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-k.life.Done():
	case <-k.came:
	case <-timer.C:
	}
}

// due returns the hosts that are to be logged in to, and when to look again; any: there are hosts.
func (k *Keeper) due() (due []host.Host, next time.Time, any bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	next = now.Add(lookAgain)
	earlier := func(t time.Time) {
		if t.Before(next) {
			next = t
		}
	}
	for _, p := range k.places {
		switch {
		case p.state == Back && !p.due.After(now):
			due = append(due, p.host)
		case p.state == Back:
			earlier(p.due)
		case p.held != nil && k.Idle > 0:
			earlier(now.Add(max(k.Idle-p.held.server.Idle(), time.Second)))
		}
	}
	return due, next, len(k.places) > 0
}

// dropIdle ends the connections that have had no session for too long.
func (k *Keeper) dropIdle() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.places {
		if k.Idle > 0 && p.held != nil && p.held.server.Idle() >= k.Idle {
			p.held.drop(errIdle)
		}
	}
}

// back logs in to lost hosts.
func (k *Keeper) back(hosts []host.Host) {
	p := k.Fanout
	p.RetryFor = retryBusy
	_, _ = fanout.Run(k.life, p, hosts, Command, k, &returns{of: k})
	k.Reach.Forget()
}

// returns is the sink of logins to lost hosts.
type returns struct {
	fleet.Nothing
	of *Keeper
}

// Done notes a failure.
func (r *returns) Done(res fleet.Result, _ fleet.Summary) error {
	k := r.of
	k.mu.Lock()
	p := k.places[res.Host.String()]
	switch {
	case p == nil || p.held != nil || res.Class == fleet.Cancelled || res.Class == fleet.NoFailure && res.Engine != byOther:
		k.mu.Unlock()
		return nil
	case res.Class == fleet.NoFailure:
		delete(k.places, res.Host.String())
		k.mu.Unlock()
		k.note(res.Host.String(), "ended", res.Note)
		return nil
	}
	p.tries++
	p.why, p.due = res.Err, time.Now().Add(backoff(p.tries))
	word := "not back"
	if p.state == Waiting || !passes(res.Class) {
		p.state, word = Waiting, "waits for --refresh"
	} else {
		p.state = Back
	}
	k.mu.Unlock()
	k.note(res.Host.String(), word, res.Err)
	return nil
}

// passes reports whether a failure may pass by itself. A login that a server refuses is not tried
// again unasked: it may lock the account.
func passes(c fleet.Class) bool {
	switch c {
	case fleet.NameFailed, fleet.Refused, fleet.TimedOut, fleet.Unroutable, fleet.Throttled, fleet.Lost, fleet.NotSSH:
		return true
	}
	return false
}

// Holds reports whether there is any host.
func (k *Keeper) Holds() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.places) > 0
}

// Tell sets a function that gets each event from now on, one at a time.
func (k *Keeper) Tell(tell func(Event)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tell = tell
}

// Event is something that happened to a host.
type Event struct {
	Time time.Time `json:"time"`
	Host string    `json:"host"`
	What string    `json:"what"`
	Why  string    `json:"why,omitempty"`
}

// mostEvents is how many are remembered.
const mostEvents = 10_000

func (k *Keeper) note(name, what, why string) {
	e := Event{time.Now(), name, what, why}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.events = append(k.events, e); len(k.events) > mostEvents {
		k.events = slices.Delete(k.events, 0, mostEvents/10)
	}
	if k.tell != nil {
		k.tell(e)
	}
}
