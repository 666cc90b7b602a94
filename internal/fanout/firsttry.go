package fanout

import (
	"errors"
	"time"

	"sshpace/internal/fleet"
)

// firstTryLimit is how long a host may be silent while others wait for its descriptor: long enough
// for a lost SYN to be sent again (RFC 6298, after 1 s).
const firstTryLimit = 1500 * time.Millisecond

var errYielded = errors.New("gave its descriptor to a host that waits")

// firstTry is the first try of a host while there are more hosts than descriptors: if the server is
// silent the host gives way, and is tried again, for as long as it may take, when all others have
// had theirs. Otherwise a thousand silent hosts would delay those that answer. Its fields are
// guarded by the attempt's mu.
type firstTry struct {
	limit   time.Duration // 0 = takes all the time it needs
	timer   *time.Timer
	yielded bool
}

// limitedByMachine reports whether the machine, not the user, bounds how many hosts are connected.
func (r *run) limitedByMachine() bool {
	slots := cap(r.Room.slots)
	return slots < r.total && (r.Fanout == 0 || slots < r.Fanout)
}

// beginFirstTry starts the clock, now that the connection may be opened.
func (a *attempt) beginFirstTry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.firstTry.limit == 0 {
		return
	}
	if a.firstTry.timer != nil {
		a.firstTry.timer.Stop()
	}
	a.firstTry.timer = time.AfterFunc(a.firstTry.limit, a.yield)
}

func (a *attempt) yield() {
	a.mu.Lock()
	yields := a.firstTry.limit > 0
	a.firstTry.yielded = yields
	a.mu.Unlock()
	if yields {
		a.endCommand(errYielded)
	}
}

// keepPlace records that the server speaks. The caller holds mu.
func (a *attempt) keepPlace() {
	if a.firstTry.timer != nil {
		a.firstTry.timer.Stop()
	}
	a.firstTry.limit = 0
}

// yielded reports whether an attempt made way for a host that waits, and nothing has run.
func (a *attempt) yielded(o *fleet.Outcome) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.firstTry.yielded && o.Class == fleet.Cancelled && o.Ran == fleet.RanNo
}
