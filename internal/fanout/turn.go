package fanout

import (
	"errors"
	"time"

	"sshpace/internal/fleet"
)

// firstTurn is how long a host may be silent while others wait for its descriptor: long enough for
// a lost SYN to be sent again (RFC 6298, after 1 s).
const firstTurn = 1500 * time.Millisecond

var errTurn = errors.New("gave its descriptor to a host that waits")

// turn is a first try of a host while there are more hosts than descriptors: if the server is
// silent the host gives way, and is tried again, for as long as it may take, when all others have
// had their turn. Otherwise a thousand silent hosts would delay those that answer. Its fields are
// guarded by the Attempt's mu.
type turn struct {
	limit time.Duration // 0 = takes all the time it needs
	timer *time.Timer
	lost  bool
}

// limitedByMachine reports whether the machine, not the user, bounds how many hosts are connected.
func (r *run) limitedByMachine() bool {
	return cap(r.slots) < r.total && (r.Fanout == 0 || cap(r.slots) < r.Fanout)
}

// beginTurn starts the clock, now that the connection may be opened.
func (a *attempt) beginTurn() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.turn.limit == 0 {
		return
	}
	if a.turn.timer != nil {
		a.turn.timer.Stop()
	}
	a.turn.timer = time.AfterFunc(a.turn.limit, a.loseTurn)
}

func (a *attempt) loseTurn() {
	a.mu.Lock()
	lost := a.turn.limit > 0
	a.turn.lost = lost
	a.mu.Unlock()
	if lost {
		a.endCommand(errTurn)
	}
}

// keepTurn records that the server speaks. The caller holds mu.
func (a *attempt) keepTurn() {
	if a.turn.timer != nil {
		a.turn.timer.Stop()
	}
	a.turn.limit = 0
}

// gaveWay reports whether an attempt lost its turn, and nothing has run.
func (a *attempt) gaveWay(o *fleet.Outcome) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.turn.lost && o.Class == fleet.Cancelled && o.Ran == fleet.RanNo
}
