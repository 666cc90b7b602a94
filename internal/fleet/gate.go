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
	under   int       // logins under way, lent slots or not
	joined  int       // logins admitted so far
	last    success
	lone    bool // one that was alone was not done in time, and nobody has logged in since
	heard   bool // a server has said something
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
	probeEvery  = 8                     // as many logins as a window holds, times this, must succeed before it tries one more
	cutInterval = 25 * time.Millisecond // at most one cut of the common window in this time
	turnedLimit = 0.12                  // share of logins turned away that makes it everybody's problem
)

// success is a login that has succeeded.
type success struct {
	at     time.Time
	took   time.Duration
	beside int // logins under way when it began, it among them
}

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
	t.beside, t.joined = g.join()
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

// took learns what a stage takes, from a login that has come to another.
func (g *gate) took(s stage, d time.Duration, next stage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.usual[s].add(d)
	g.heard = g.heard || next == speaking
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

// join counts a login that begins, and tells how many are under way, and how many have been.
func (g *gate) join() (under, joined int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under++
	g.joined++
	return g.under, g.joined
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.under--
}

// loggedIn takes a note of a success.
func (g *gate) loggedIn(t *ticket) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.lone = success{now, now.Sub(t.admitted), t.beside}, false
}

// late says why a login that was not done in time was late: because of others beside it,
// which may be tried again with fewer, down to one alone; or on its own account, where others got
// on much faster meanwhile. Where one alone was late, others are not to blame.
func (g *gate) late(t *ticket) lateness {
	_, active := g.all.size()
	g.mu.Lock()
	defer g.mu.Unlock()
	took := time.Since(t.admitted)
	more := max(float64(max(t.beside, g.under))/float64(max(g.last.beside, 1)), 1) // a crowd shares what there is
	stuck := g.last.took > 0 && float64(took) > patienceFactor*more*float64(g.last.took)
	meanwhile := g.last.at.After(t.admitted) && patienceFactor*g.last.took < took
	switch {
	case t.beside == 1 && t.joined == g.joined:
		return alone
	case g.lone, stuck && (meanwhile || active <= minLogins):
		return byItself
	case meanwhile, stuck:
		return overtaken
	}
	return crowded
}

// lateness is why a login was not done in time.
type lateness uint8

const (
	inTime    lateness = iota
	crowded            // others were under way, and none was much faster
	overtaken          // others were, although many were under way
	byItself           // others got further, or one alone did not either
	alone              // there was no other
)

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
// in time among so many: once for all that began before the last cut. What its last
// stage has taken is learned while nobody has logged in. Where no server has said anything,
// others are hardly to blame: one alone shows that at once.
func (g *gate) overdue(admitted time.Time, s stage, d time.Duration) (under int, cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last.at.IsZero() { // what all have waited for in vain takes longer than that
		g.usual[s] = max(g.usual[s], mean(d))
	}
	if !admitted.After(g.lastCut) {
		return 0, false
	}
	g.lastCut = time.Now()
	if !g.heard {
		return 1, true
	}
	return g.under, true
}

// gaveUp takes a note of a login that was late although it was the only one.
func (g *gate) gaveUp() {
	g.mu.Lock()
	first := !g.lone
	g.lone = true
	g.mu.Unlock()
	if first {
		g.all.forget(startLogins)
	}
}

// ending says how a login ended.
type ending uint8

const (
	ended      ending = iota // any failure that says nothing about load
	loggedIn                 // success
	turnedAway               // the server asked to slow down
	overdue                  // not done in time
)

// ticket is the permission for one login.
type ticket struct {
	gate     *gate
	window   *window
	admitted time.Time
	beside   int // under way when it was admitted, it among them
	joined   int // how many were admitted before it, and it
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
	t.gate.took(t.stage, now.Sub(t.since), s)
	t.stage, t.since = s, now
	if t.lent {
		t.lent = false
		t.gate.all.retake()
	}
	t.lend.Reset(t.gate.patience(s))
}

// end gives the slots back, once, and lets the windows learn.
func (t *ticket) end(e ending) (why lateness) {
	if t == nil {
		return inTime
	}
	t.mu.Lock()
	done, lent, stage, since := t.done, t.lent, t.stage, t.since
	t.done = true
	t.mu.Unlock()
	if done {
		return inTime
	}
	t.lend.Stop()
	all := t.gate.all
	switch e {
	case loggedIn:
		t.gate.took(stage, time.Since(since), speaking)
		t.gate.loggedIn(t)
		t.window.success()
		t.window.grow()
		all.success()
		t.gate.turnedAway(false)
	case turnedAway:
		t.window.cut()
		if t.gate.turnedAway(true) {
			all.cut()
		}
	case overdue:
		if why = t.gate.late(t); why == alone {
			t.gate.gaveUp()
		} else if under, cut := t.gate.overdue(t.admitted, stage, time.Since(since)); cut {
			all.narrow(under, why == crowded && under > 1)
		}
	}
	t.gate.leave()
	t.window.release()
	if !lent {
		all.release()
	}
	return why
}
