package mux

import (
	"cmp"
	"errors"
	"os"
	"sync"
	"time"

	"sshpace/internal/ssh/channel"
)

// ErrSilent is the end of Serve after the server has sent nothing for long.
var ErrSilent = errors.New("the server does not answer")

const (
	// defaultSilence is Server.Silence where that is 0.
	defaultSilence = 3 * time.Second
	// soonest is the part of it after which a server is first asked whether it lives.
	soonest = 3
	// descriptorPause is the time between two tries to make a socket without descriptors.
	descriptorPause = 100 * time.Millisecond
	// tooSilent is how many looks in a row may find nothing while nobody has a session, and no
	// person would have to log in again.
	tooSilent = 10
)

// watch looks whether the server lives. No client waits for one that does not: its request fails
// before anything has run, and there is no socket until the server is heard again, so that ssh
// connects by itself. Sessions go on: it may be the path that is interrupted. Keepalives end a
// connection that is dead. The lock of its Server guards all of it.
type watch struct {
	timer   *time.Timer
	looking bool             // the timer runs
	heard   int64            // bytes of the server at the last look
	missed  int              // looks in a row that found no more
	asked   map[*func()]bool // what to do about requests without an answer
	relays  map[*channel.Relay]*link
	looked  sync.Cond
}

// counted is a connection that knows how much has come.
type counted interface{ Traffic() (received, sent int64) }

// ask notes that something is asked of the server. giveUp is called if that turns out not to live,
// or at the end of the connection; answered prevents it, and reports whether it was in time.
func (s *Server) ask(giveUp func()) (answered func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.asked[&giveUp] = true
	s.look()
	return func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		defer delete(s.watch.asked, &giveUp)
		return s.watch.asked[&giveUp]
	}
}

// giveUp ends what was asked of the server, and clients in proxy mode that wait for a channel.
func (s *Server) giveUp() {
	s.mu.Lock()
	asked := s.watch.asked
	s.watch.asked = map[*func()]bool{}
	for r, l := range s.watch.relays {
		if !r.Open() {
			l.conn.Close()
		}
	}
	s.mu.Unlock()
	for f := range asked {
		(*f)()
	}
}

// Check asks the server whether it lives, where that is in doubt.
func (s *Server) Check() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watch.missed == 0 {
		s.watch.looking = false // what has come so far says nothing
		if s.look(); s.watch.looking {
			s.miss()
		}
	}
}

// Silent reports whether the server is away, and the socket with it.
func (s *Server) Silent() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watch.missed > 1
}

// lives waits until it is known whether the server lives, where that is in doubt.
func (s *Server) lives() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.watch.missed == 1 && !s.over() {
		s.watch.looked.Wait()
	}
	return s.watch.missed == 0
}

// relay is a client in proxy mode until over.
func (s *Server) relay(r *channel.Relay, l *link) (over func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watch.relays[r] = l
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watch.relays, r)
	}
}

// expect looks soon whether something has come since now.
func (s *Server) expect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.look()
}

// look is expect for a caller that holds the lock.
func (s *Server) look() {
	w := &s.watch
	if c, can := s.Conn.Net.(counted); can && w.timer != nil && !w.looking {
		w.looking = true
		w.heard, _ = c.Traffic()
		w.timer.Reset(s.silence() / soonest)
	}
}

func (s *Server) silence() time.Duration { return cmp.Or(s.Silence, defaultSilence) }

// tick is a look.
func (s *Server) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	if !w.looking || s.over() {
		return
	}
	if now, _ := s.Conn.Net.(counted).Traffic(); now == w.heard {
		s.miss()
	} else {
		s.hear(now)
	}
	w.looked.Broadcast()
	if w.looking {
		w.timer.Reset(s.silence())
	}
}

// hear notes that something has come. The caller holds the lock.
func (s *Server) hear(now int64) {
	w := &s.watch
	hidden := w.missed > 1
	if w.heard, w.missed, w.looking = now, 0, len(w.asked) > 0; hidden {
		s.show()
	}
}

// show makes a socket again, unless another master did so meanwhile. The caller holds the lock.
func (s *Server) show() {
	if s.ending != nil || s.over() {
		return
	}
	l, err := Listen(s.path)
	switch {
	case err == nil:
		s.listen = l
		s.tasks.Go(func() { s.accept(l) })
	case errors.Is(err, os.ErrExist):
		s.ending = err
		s.settle()
	default: // there are no descriptors
		time.AfterFunc(descriptorPause, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.show()
		})
	}
}

// miss notes that nothing has come. The caller holds the lock.
func (s *Server) miss() {
	switch s.watch.missed++; {
	case s.watch.missed == 1:
		s.tasks.Go(func() {
			_, _, _ = s.Conn.SendRequest("keepalive@openssh.com", true, nil)
			s.watch.timer.Reset(0)
		})
	case s.watch.missed == 2:
		s.listen.Close()
		s.tasks.Go(s.giveUp)
	case s.watch.missed > tooSilent && len(s.open) == 0 && !s.Conn.ByPerson:
		s.end(ErrSilent)
	}
}
