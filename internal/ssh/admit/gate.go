package admit

import (
	"context"
	"sync"
	"time"
)

// Gate bounds the simultaneous logins. There is one window per server address and one for all
// together. Both are cut by logins that are turned away (AIMD, as in TCP). That of an address grows
// by each success, that of all only while logins take no longer for it (see congestion): many
// addresses may be one machine.
type Gate struct {
	Limits
	all *window

	mu         sync.Mutex
	servers    map[string]*window
	turned     float64   // moving share of logins that were turned away
	lastCut    time.Time // of all
	underWay   int       // logins, whether or not their slots are lent
	joined     int       // logins admitted so far
	last       success
	aloneLate  bool // a lone login timed out, and nobody has logged in since
	heard      bool // a server has sent something
	lostAt     time.Time
	congestion congestion
	usual      [stages]mean // duration of each stage
	lent       [stages]int  // slots lent while that is not known
}

const (
	startLogins  = 48
	fewLogins    = 8  // too few to slow each other; below where sshd's default MaxStartups 10:30:100 begins to drop
	minLogins    = 2  // if servers turn away even those
	maxPerServer = 96 // just below MaxStartups' hard limit
	maxLogins    = 4096

	cutFactor   = 0.5
	probeEvery  = 8                     // window size times this many logins must succeed before it tries one more
	cutInterval = 25 * time.Millisecond // at most one cut of the common window in this time
	turnedLimit = 0.12                  // share of logins turned away that makes it everybody's problem
)

// success is a login that has succeeded.
type success struct {
	at         time.Time
	took       time.Duration
	concurrent int // simultaneous logins when it began, this one included
}

// Stage is how far a login is, for its slot of the common window.
type Stage uint8

// The stages, after the first, in which a login is prepared.
const (
	preparing  Stage = iota
	Connecting       // the connection is being made
	Connected        // the server has sent nothing yet
	Speaking         // the server speaks SSH: from now on the login costs CPU
	stages     = iota
)

// A login that stays in a stage for longer than lendFactor times the usual duration will not
// advance soon, and costs nobody anything: its slot of the common window is lent to another host,
// so that dead hosts, hung ones and slow ones hold up nobody. If it advances after all, it takes
// its slot back. The usual duration includes the late ones, too: where all are slow, nothing is
// lent. While nobody has advanced, the waiting ones are given more and more time.
const lendFactor = 3

var lendTimes = [stages]struct{ unknown, least time.Duration }{
	preparing:  {time.Second, 500 * time.Millisecond},
	Connecting: {250 * time.Millisecond, 100 * time.Millisecond},
	Connected:  {500 * time.Millisecond, 100 * time.Millisecond},
	Speaking:   {5 * time.Second, 500 * time.Millisecond},
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

// New makes a gate.
func New(l Limits) *Gate {
	top := float64(maxLogins)
	if l.Most > 0 {
		top = float64(l.Most)
	}
	return &Gate{
		Limits:     l,
		all:        &window{limit: min(startLogins, top), floor: min(minLogins, top), top: top, slowStart: true},
		servers:    make(map[string]*window),
		congestion: congestion{alone: usuallyAlone},
	}
}

// admit waits for a slot at the server and for a slot of all.
func (g *Gate) admit(ctx context.Context, addr string) (*slot, error) {
	w := g.server(addr)
	if err := w.acquire(ctx); err != nil {
		return nil, err
	}
	if err := g.all.acquire(ctx); err != nil {
		w.release()
		return nil, err
	}
	if g.Apart > 0 && !wait(ctx, w.lastRelease().Add(g.Apart)) {
		g.all.release()
		w.release()
		return nil, context.Cause(ctx)
	}
	s := &slot{server: w, since: time.Now(), admitted: time.Now()}
	s.concurrent, s.joined = g.join()
	return s, nil
}

func (g *Gate) server(addr string) *window {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := g.servers[addr]
	if w == nil {
		w = &window{limit: fewLogins, floor: 1, top: maxPerServer, slowStart: true}
		g.servers[addr] = w
	}
	return w
}

// lendAfter returns how long a login may stay in a stage before its slot is lent.
func (g *Gate) lendAfter(s Stage) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.usual[s] == 0 {
		return lendTimes[s].unknown << min(g.lent[s]/startLogins, 3)
	}
	return max(lendFactor*time.Duration(g.usual[s]), lendTimes[s].least)
}

// lends records that a slot is lent.
func (g *Gate) lends(s Stage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.usual[s] == 0 {
		g.lent[s]++
	}
}

// took learns the time in a stage, from a login that has reached another.
func (g *Gate) took(s Stage, d time.Duration, next Stage) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.usual[s].add(d)
	g.heard = g.heard || next == Speaking
}

// learn learns how quickly a server has shown its key, and sizes the common window by it.
func (g *Gate) learn(l sample) {
	g.mu.Lock()
	defer g.mu.Unlock()
	limit, underWay := g.all.size()
	if estimate, known := g.congestion.add(l, underWay, max(int(limit), leastRound)); known {
		g.all.resize(estimate, fewLogins)
	}
}

// near reports whether a login is about as quick as among few others.
func (g *Gate) near(l sample) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.congestion.near(l)
}

// join counts a login that begins, and returns the number of simultaneous ones, and of all so far.
func (g *Gate) join() (underWay, joined int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.underWay++
	g.joined++
	return g.underWay, g.joined
}

func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.underWay--
}

// loggedIn records a success.
func (g *Gate) loggedIn(s *slot) {
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last, g.aloneLate = success{now, now.Sub(s.admitted), s.concurrent}, false
}

// restarting reports whether a connection was lost a moment ago.
func (g *Gate) restarting() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.lostAt.IsZero() && time.Since(g.lostAt) < restartNotice
}

// lateness is why a login timed out.
type lateness uint8

const (
	inTime    lateness = iota
	crowded            // others were running, and none was much faster
	overtaken          // others were, although there were many
	byItself           // others got further, or one alone did not either
	alone              // there was no other
)

// late returns why a login timed out: because of others, so that it may be tried again with fewer,
// down to one alone; or on its own account, if others were much faster meanwhile. If one alone was
// late, others are not to blame.
func (g *Gate) late(s *slot) lateness {
	_, active := g.all.size()
	g.mu.Lock()
	defer g.mu.Unlock()
	took := time.Since(s.admitted)
	more := max(float64(max(s.concurrent, g.underWay))/float64(max(g.last.concurrent, 1)), 1) // simultaneous logins share the resources
	stuck := g.last.took > 0 && float64(took) > lendFactor*more*float64(g.last.took)
	meanwhile := g.last.at.After(s.admitted) && lendFactor*g.last.took < took
	switch {
	case s.concurrent == 1 && s.joined == g.joined:
		return alone
	case g.aloneLate, stuck && (meanwhile || active <= minLogins):
		return byItself
	case meanwhile, stuck:
		return overtaken
	}
	return crowded
}

// turnedAway records whether a login was turned away and reports whether the common window must be
// cut too.
func (g *Gate) turnedAway(yes bool) (cut bool) {
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

// overdue reports whether the common window must be cut for a login that timed out, and to how
// many: once for all that began before the last cut. The time in its last stage is learned while
// nobody has logged in. If no server has sent anything, others are hardly to blame: one alone shows
// that at once.
func (g *Gate) overdue(s *slot) (to int, cut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.last.at.IsZero() { // the event that all have waited for in vain takes longer than that
		g.usual[s.stage] = max(g.usual[s.stage], mean(time.Since(s.since)))
	}
	if !s.admitted.After(g.lastCut) {
		return 0, false
	}
	g.lastCut = time.Now()
	if !g.heard {
		return 1, true
	}
	return g.underWay, true
}

// timedOutAlone records a login that timed out although no other was in progress.
func (g *Gate) timedOutAlone() {
	g.mu.Lock()
	first := !g.aloneLate
	g.aloneLate = true
	g.mu.Unlock()
	if first {
		g.all.forget(startLogins)
	}
}
