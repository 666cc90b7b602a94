package admit

import (
	"runtime"
	"time"
)

// slot is the place of one login in both windows. The mutex of its ticket guards it.
type slot struct {
	server     *window
	admitted   time.Time
	concurrent int // simultaneous logins when it was admitted, this one included
	joined     int // how many were admitted before it, and it
	lend       *time.Timer

	stage Stage
	since time.Time // when stage began
	done  bool
	lent  bool // the slot of the common window was given back already
}

func (s *slot) open() bool { return s != nil && !s.done }

// lendOut gives the slot of the common window back early, if it is time.
func (t *Ticket) lendOut(s *slot) {
	waiting := time.Now()
	runtime.Gosched()
	behind := time.Since(waiting) // this process is late: recent events may not be known yet
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.done || s.lent {
		return
	}
	if left := t.gate.lendAfter(s.stage) + lendFactor*behind - time.Since(s.since); left > 0 {
		s.lend.Reset(left)
		return
	}
	s.lent = true
	t.gate.lends(s.stage)
	t.gate.all.release()
}

// reached moves a login to a stage. A slot already lent is taken back, beyond the limit of the
// window if necessary: nobody else is admitted until there is room again.
func (g *Gate) reached(s *slot, next Stage) {
	now := time.Now()
	g.took(s.stage, now.Sub(s.since), next)
	s.stage, s.since = next, now
	if s.lent {
		s.lent = false
		g.all.retake()
	}
	s.lend.Reset(g.lendAfter(next))
}

// leave gives back the slots of the running login, once, and lets the windows learn. It returns why
// the login was late, if so, and how many ran when it began.
func (t *Ticket) leave(e Ending) (late lateness, concurrent int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.slot
	if !s.open() {
		return inTime, 0
	}
	s.done = true
	s.lend.Stop()
	late = t.gate.learnEnd(s, e)
	t.gate.leave()
	s.server.release()
	if !s.lent {
		t.gate.all.release()
	}
	return late, s.concurrent
}

// learnEnd lets the windows learn from the end of a login, and returns why it was late, if so.
func (g *Gate) learnEnd(s *slot, e Ending) (late lateness) {
	switch {
	case e&loggedIn != 0:
		g.took(s.stage, time.Since(s.since), Speaking)
		g.loggedIn(s)
		s.server.success()
		s.server.grow()
		g.all.success()
		g.turnedAway(false)
	case e&TurnedAway != 0:
		s.server.cut()
		if g.turnedAway(true) {
			g.all.cut()
		}
	case e&Overdue != 0:
		if late = g.late(s); late == alone {
			g.timedOutAlone()
		} else if to, cut := g.overdue(s); cut {
			g.all.narrow(to, late == crowded && to > 1)
		}
	}
	return late
}
