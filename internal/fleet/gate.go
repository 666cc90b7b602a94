package fleet

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// gate decides how many logins may be under way at once. What it counts is
// unauthenticated connections, the thing that sshd limits (MaxStartups,
// sshd_config(5)) and that costs CPU at both ends; running commands are not its matter.
//
// There is one window per server address and one for all together. Both are cut by
// what is turned away (AIMD, as in TCP). That of an address grows by what succeeds,
// that of all only while logins take no longer for it (see crowd): many addresses may
// be one machine.
type gate struct {
	all *window

	mu      sync.Mutex
	servers map[string]*window
	turned  float64   // moving share of logins that were turned away
	lastCut time.Time // of all
	crowd   crowd
	usual   [stages]mean // what each stage takes
	lent    [stages]int  // slots lent while that is not known
}

const (
	startLogins  = 48
	fewLogins    = 8  // are no crowd to anybody; below where sshd's default MaxStartups 10:30:100 begins to drop
	minLogins    = 2  // where servers turn away even those
	maxPerServer = 96 // just below MaxStartups' hard limit
	maxLogins    = 4096

	cutFactor   = 0.5
	cutInterval = 25 * time.Millisecond // at most one cut of the common window in this time
	turnedLimit = 0.12                  // share of logins turned away that makes it everybody's problem
)

// stage is how far a login is, as far as its slot of the common window is concerned.
type stage uint8

const (
	preparing stage = iota
	connecting
	silent // connected
	speaking
	stages = iota
)

// A login that stays in a stage for longer than patienceFactor times what that stage
// takes others gets no further soon, and costs nobody anything: its slot of the common
// window is lent to another host, so that dead hosts, hung ones and slow ones hold up
// nobody. One that gets further after all takes its slot back. What others take is
// learned from the late ones, too: where all are slow, nothing is lent. While nobody has
// come further, those that are waited for are given ever more time.
const patienceFactor = 3

var patience = [stages]struct{ unknown, least time.Duration }{
	preparing:  {time.Second, 500 * time.Millisecond},
	connecting: {250 * time.Millisecond, 100 * time.Millisecond},
	silent:     {500 * time.Millisecond, 100 * time.Millisecond},
	speaking:   {5 * time.Second, 500 * time.Millisecond},
}

// mean is a moving one; 0 before the first.
type mean time.Duration

func (m *mean) add(d time.Duration) {
	const weight = 8
	if *m == 0 {
		*m = mean(d)
	}
	*m += (mean(d) - *m) / weight
}

func newGate(limit int) *gate {
	top := float64(maxLogins)
	if limit > 0 {
		top = float64(limit)
	}
	return &gate{
		all:     &window{limit: min(startLogins, top), floor: min(minLogins, top), top: top, slowStart: true},
		servers: make(map[string]*window),
		crowd:   crowd{alone: usuallyAlone},
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
	t := &ticket{gate: g, window: w, since: time.Now(), admitted: time.Now()}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lend = time.AfterFunc(g.patience(preparing), t.lendOut)
	return t, nil
}

func (g *gate) server(addr string) *window {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.servers[addr]
	if w == nil {
		w = &window{limit: fewLogins, floor: 1, top: maxPerServer, slowStart: true}
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

// patience is how long a login may stay in a stage before its slot is lent.
func (g *gate) patience(s stage) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.usual[s] == 0 {
		return patience[s].unknown << min(g.lent[s]/startLogins, 3)
	}
	return max(patienceFactor*time.Duration(g.usual[s]), patience[s].least)
}

// lending takes a note of a slot that is lent.
func (g *gate) lending(s stage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.usual[s] == 0 {
		g.lent[s]++
	}
}

// took learns what a stage takes.
func (g *gate) took(s stage, d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.usual[s].add(d)
}

// answered learns how quickly a server has shown its key, and makes the common window
// as large as is worth it.
func (g *gate) answered(l login) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit, under := g.all.size()
	if worth, known := g.crowd.add(l, under, max(int(limit), leastRound)); known {
		g.all.resize(worth, fewLogins)
	}
}

// near tells whether a login gets on about as quickly as with few under way.
func (g *gate) near(l login) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.crowd.near(l)
}

// crowded tells whether logins may be slow for others under way.
func (g *gate) crowded() bool {
	_, under := g.all.size()
	return under > minLogins
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

// overdue tells whether the common window must be cut for a login that was not done
// in time: once for all that began before the last cut. What its last stage has taken is
// learned if nobody has come further.
func (g *gate) overdue(admitted time.Time, s stage, d time.Duration) (cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.usual[s] == 0 {
		g.usual[s].add(d)
	}
	if !admitted.After(g.lastCut) {
		return false
	}
	g.lastCut = time.Now()
	return true
}

// ending says how a login ended.
type ending uint8

const (
	ended      ending = iota // any failure that says nothing about load
	loggedIn                 // success
	turnedAway               // the server asked to slow down
	overdue                  // not done in time, among many
)

// ticket is the permission for one login.
type ticket struct {
	gate     *gate
	window   *window
	admitted time.Time
	lend     *time.Timer

	mu    sync.Mutex
	stage stage
	since time.Time // when stage began
	done  bool
	lent  bool // the slot of the common window was given back already
}

// lendOut gives the slot of the common window back early, if it is time by what is
// known now.
func (t *ticket) lendOut() {
	waiting := time.Now()
	runtime.Gosched()
	behind := time.Since(waiting) // this process is: by so much what has happened may not be known yet
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done || t.lent {
		return
	}
	if left := t.gate.patience(t.stage) + patienceFactor*behind - time.Since(t.since); left > 0 {
		t.lend.Reset(left)
		return
	}
	t.lent = true
	t.gate.lending(t.stage)
	t.gate.all.release()
}

// reach says that the login has come to a stage. A slot already lent is taken back,
// beyond the limit of the window if need be: nobody else is admitted until there is
// room again. A nil ticket has nothing to learn or to give.
func (t *ticket) reach(s stage) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done || s <= t.stage {
		return
	}
	now := time.Now()
	t.gate.took(t.stage, now.Sub(t.since))
	t.stage, t.since = s, now
	if t.lent {
		t.lent = false
		t.gate.all.retake()
	}
	t.lend.Reset(t.gate.patience(s))
}

// end gives the slots back, once, and lets the windows learn.
func (t *ticket) end(e ending) {
	if t == nil {
		return
	}
	t.mu.Lock()
	done, lent, stage, since := t.done, t.lent, t.stage, t.since
	t.done = true
	t.mu.Unlock()
	if done {
		return
	}
	t.lend.Stop()
	all := t.gate.all
	switch e {
	case loggedIn:
		t.gate.took(stage, time.Since(since))
		t.window.grow()
		t.gate.turnedAway(false)
	case turnedAway:
		t.window.cut(false)
		if t.gate.turnedAway(true) {
			all.cut(false)
		}
	case overdue:
		if t.gate.overdue(t.admitted, stage, time.Since(since)) {
			all.cut(true)
		}
	}
	t.window.release()
	if !lent {
		all.release()
	}
}
