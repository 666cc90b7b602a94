package fleet

import (
	"context"
	"sync"
	"time"
)

// gate decides how many logins may be under way at once. What it counts is
// unauthenticated connections, the thing that sshd limits (MaxStartups,
// sshd_config(5)) and that costs CPU here; running commands are not its matter.
//
// There is one window per server address and one for all together. Each grows
// by what succeeds and is cut by what is turned away (AIMD, as in TCP): fast
// until the first cut, then one slot per window of successes.
type gate struct {
	all *window

	mu      sync.Mutex
	servers map[string]*window
	turned  float64   // moving share of logins that were turned away
	lastCut time.Time // of all
	climb   climb
	silence time.Duration // moving mean, from the connection to the first word of a server

	busy func() bool // true while this machine is the bottleneck
}

const (
	startPerServer = 8  // below where sshd's default MaxStartups 10:30:100 begins to drop
	maxPerServer   = 96 // just below its hard limit
	startLogins    = 48
	minLogins      = 2
	maxLogins      = 4096

	// A login that is silent for this long costs no CPU: its slot of the common
	// window is lent to another host. Dead hosts must not hold up live ones, nor
	// those that refuse at once. Hosts further away than this take their slot
	// back when they answer.
	lendConnectAfter = 25 * time.Millisecond
	lendLoginAfter   = 2 * time.Second // once the server has said something

	// A server that was connected to may be silent for so many times as long as
	// the others were, within bounds: hung ones must not hold up live ones either.
	silenceFactor   = 4
	usualSilence    = 25 * time.Millisecond // while nobody has answered yet
	shortestSilence = 50 * time.Millisecond

	cutFactor   = 0.5
	cutInterval = 25 * time.Millisecond // at most one cut of the common window in this time
	turnedLimit = 0.12                  // share of logins turned away that makes it everybody's problem
)

func newGate(limit int, busy func() bool) *gate {
	top := float64(maxLogins)
	start := float64(startLogins)
	if limit > 0 {
		top = min(top, float64(limit))
		start = min(start, top)
	}
	return &gate{
		all:     &window{limit: start, floor: min(minLogins, top), top: top, slowStart: true},
		servers: make(map[string]*window),
		busy:    busy,
		silence: usualSilence,
	}
}

// admit waits for a slot at the server and for a slot of all.
func (g *gate) admit(ctx context.Context, addr string) (*ticket, error) {
	w := g.server(addr)
	if err := w.acquire(ctx); err != nil {
		return nil, err
	}
	if err := g.all.acquire(ctx); err != nil {
		w.release()
		return nil, err
	}
	t := &ticket{gate: g, window: w}
	t.lend = time.AfterFunc(lendConnectAfter, t.lendOut)
	return t, nil
}

func (g *gate) server(addr string) *window {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.servers[addr]
	if w == nil {
		w = &window{limit: startPerServer, floor: 1, top: maxPerServer, slowStart: true}
		g.servers[addr] = w
	}
	return w
}

// letIn tells whether a login at the server has succeeded.
func (g *gate) letIn(addr string) bool {
	w := g.server(addr)
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.grown
}

// turnedAway records whether a login was turned away and tells whether the
// common window must be cut too.
func (g *gate) turnedAway(yes bool) (cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turned *= 0.9
	if !yes {
		return false
	}
	g.turned += 0.1
	if now := time.Now(); g.turned > turnedLimit && now.Sub(g.lastCut) > cutInterval {
		g.lastCut = now
		return true
	}
	return false
}

// success lets the common window grow, if this machine has CPU left and more
// logins at once have so far meant more logins a second.
func (g *gate) success() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch limit := g.all.size(); {
	case !g.climb.helps(time.Now(), limit):
		g.all.shrink(g.climb.limit)
	case !g.busy():
		g.all.grow()
	}
}

// climb tells whether a larger window is of use. Where one machine serves many
// of the hosts, or the network is full, more logins at once only make each of
// them slower, until queues overflow.
type climb struct {
	since time.Time
	n     int // successes since
	rate  float64
	limit float64 // window at which rate was reached
	hold  time.Time
}

const (
	climbSpan  = 500 * time.Millisecond
	climbCount = 20              // successes that a rate needs
	climbStep  = 1.25            // growth of the window after which it is compared
	climbGain  = 1.1             // growth of the rate that it must have brought
	climbHold  = 3 * time.Second // then nothing grows
)

// helps counts a success at a window of limit.
func (c *climb) helps(now time.Time, limit float64) bool {
	if now.Before(c.hold) {
		return false
	}
	if c.since.IsZero() || c.since.Before(c.hold) {
		c.since, c.n = now, 0
	}
	c.n++
	span := now.Sub(c.since)
	if span < climbSpan || c.n < climbCount || limit < climbStep*c.limit {
		return true
	}
	rate := float64(c.n) / span.Seconds()
	c.since, c.n = now, 0
	if c.rate > 0 && rate < climbGain*c.rate {
		c.hold = now.Add(climbHold)
		return false
	}
	c.rate, c.limit = rate, limit
	return true
}

// ending says how a login ended.
type ending uint8

const (
	ended      ending = iota // any failure that says nothing about load
	loggedIn                 // success
	turnedAway               // the server asked to slow down
)

// ticket is the permission for one login.
type ticket struct {
	gate   *gate
	window *window
	lend   *time.Timer

	mu    sync.Mutex
	since time.Time // when it was connected, until the server says something
	done  bool
	lent  bool // the slot of the common window was given back already
}

// lendOut gives the slot of the common window back early.
func (t *ticket) lendOut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done || t.lent {
		return
	}
	t.lent = true
	t.gate.all.release()
}

// patience is how long a server that was connected to keeps its slot before it
// says anything.
func (g *gate) patience() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return min(max(silenceFactor*g.silence, shortestSilence), lendLoginAfter)
}

// heard learns how long a server was silent.
func (g *gate) heard(silence time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	const weight = 8
	g.silence += (silence - g.silence) / weight
}

// connected puts lending off for a moment: the server will say something soon.
func (t *ticket) connected() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return
	}
	t.since = time.Now()
	if !t.lent {
		t.lend.Reset(t.gate.patience())
	}
}

// alive puts lending off: the server said something, the login will cost CPU. A slot
// already lent is taken back, beyond the limit of the window if need be: nobody
// else is admitted until there is room again.
func (t *ticket) alive() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done {
		return
	}
	if !t.since.IsZero() {
		t.gate.heard(time.Since(t.since))
		t.since = time.Time{}
	}
	if t.lent {
		t.lent = false
		t.gate.all.retake()
	}
	t.lend.Reset(lendLoginAfter)
}

// end gives the slots back, once, and lets the windows learn. A nil ticket has
// nothing to give.
func (t *ticket) end(e ending) {
	if t == nil {
		return
	}
	t.mu.Lock()
	done, lent := t.done, t.lent
	t.done = true
	t.mu.Unlock()
	if done {
		return
	}
	t.lend.Stop()
	all := t.gate.all
	switch e {
	case loggedIn:
		t.window.grow()
		t.gate.success()
		t.gate.turnedAway(false)
	case turnedAway:
		t.window.cut()
		if t.gate.turnedAway(true) {
			all.cut()
		}
	}
	t.window.release()
	if !lent {
		all.release()
	}
}

// window is a first-come-first-served semaphore whose size learns.
type window struct {
	mu        sync.Mutex
	limit     float64 // at least floor, at most top
	floor     float64
	top       float64
	slowStart bool // until the first cut: one more for every success
	grown     bool // there was a success
	active    int
	queue     []chan struct{} // waiters, oldest first; closed = admitted
}

func (w *window) acquire(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	w.mu.Lock()
	if w.active < int(w.limit) && len(w.queue) == 0 {
		w.active++
		w.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	w.queue = append(w.queue, turn)
	w.mu.Unlock()

	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		w.leave(turn)
		return context.Cause(ctx)
	}
}

// leave takes a waiter out of the queue, or gives back the slot that it was
// handed in the meantime.
func (w *window) leave(turn chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, q := range w.queue {
		if q == turn {
			w.queue = append(w.queue[:i], w.queue[i+1:]...)
			return
		}
	}
	w.active--
	w.wake()
}

// retake takes a slot whether or not there is room.
func (w *window) retake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active++
}

func (w *window) release() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.active--
	w.wake()
}

// wake admits waiters while there is room. The caller holds mu.
func (w *window) wake() {
	for len(w.queue) > 0 && w.active < int(w.limit) {
		w.active++
		close(w.queue[0])
		w.queue[0] = nil
		w.queue = w.queue[1:]
	}
}

func (w *window) grow() {
	w.mu.Lock()
	defer w.mu.Unlock()
	step := 1.0
	if !w.slowStart {
		step = 1 / w.limit
	}
	w.limit, w.grown = min(w.limit+step, w.top), true
	w.wake()
}

func (w *window) size() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.limit
}

// shrink makes the window limit large, if it is larger.
func (w *window) shrink(limit float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.limit = max(min(w.limit, limit), w.floor)
}

func (w *window) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slowStart = false
	w.limit = max(w.limit*cutFactor, w.floor)
}
