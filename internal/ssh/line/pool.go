package line

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Pool shares lines: all who need one to the same place get the same one. The first of them has it
// made. Set the fields before the first use.
type Pool[K comparable] struct {
	// Idle is how long an unused line is kept; 0 is until Close.
	Idle time.Duration
	// Memory returns how long a failure is remembered. Until then all who ask fail at once, and not
	// one timeout after the other. If it is nil, none is remembered.
	Memory func(error) time.Duration

	mu     sync.Mutex
	places map[K]*shared
	closed bool
}

// shared is a line: it was made, is being made, or has failed.
type shared struct {
	ready chan struct{} // closed when line or err is set
	line  Line
	err   error
	until time.Time // the failure is remembered until then
	users int
	idle  *time.Timer
}

// ErrClosed reports that the Pool is closed.
var ErrClosed = errors.New("interrupted")

// Get returns the line to a place, which make makes if there is none. The caller calls put when it
// no longer uses the line. The end of ctx ends the wait, but not make: others may wait, too.
func (p *Pool[K]) Get(ctx context.Context, place K, make func() (Line, error)) (l Line, put func(), err error) {
	s, err := p.enter(place, make)
	if err != nil {
		return nil, nil, err
	}
	put = sync.OnceFunc(func() { p.leave(place, s) })
	select {
	case <-s.ready:
		err = s.err
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		put()
		return nil, nil, err
	}
	return s.line, put, nil
}

// enter finds the line to a place, or has it made, and adds a user.
func (p *Pool[K]) enter(place K, open func() (Line, error)) (*shared, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	s := p.places[place]
	if s == nil || s.forgotten() {
		if p.places == nil {
			p.places = make(map[K]*shared)
		}
		s = &shared{ready: make(chan struct{}), users: 1} // the maker
		p.places[place] = s
		go p.make(place, s, open)
	}
	if s.users++; s.idle != nil {
		s.idle.Stop()
	}
	return s, nil
}

// forgotten reports whether a failure may be tried again.
func (s *shared) forgotten() bool {
	select {
	case <-s.ready:
		return s.err != nil && time.Now().After(s.until)
	default:
		return false
	}
}

func (p *Pool[K]) make(place K, s *shared, open func() (Line, error)) {
	if s.line, s.err = open(); s.err != nil {
		s.until = time.Now()
		if p.Memory != nil {
			s.until = s.until.Add(p.Memory(s.err))
		}
		close(s.ready)
		return
	}
	close(s.ready)
	p.leave(place, s)
	<-s.line.Done()
	p.forget(place, s)
}

// forget removes a line from the pool, so that the next user has a new one made.
func (p *Pool[K]) forget(place K, s *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.places[place] == s {
		delete(p.places, place)
	}
}

// leave counts one user of a line less. An unused line is closed after Idle.
func (p *Pool[K]) leave(place K, s *shared) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.users--; s.users == 0 && s.line != nil && p.Idle > 0 {
		s.idle = time.AfterFunc(p.Idle, func() { p.rest(place, s) })
	}
}

// rest closes a line that is still unused.
func (p *Pool[K]) rest(place K, s *shared) {
	p.mu.Lock()
	unused := s.users == 0 && p.places[place] == s
	if unused {
		delete(p.places, place)
	}
	p.mu.Unlock()
	if unused {
		s.line.Close()
	}
}

// Close ends all lines. It waits for their ends, and for lines that are being made.
func (p *Pool[K]) Close() {
	p.mu.Lock()
	p.closed = true
	var all []*shared
	for _, s := range p.places {
		all = append(all, s)
	}
	p.mu.Unlock()
	for _, s := range all {
		if <-s.ready; s.line != nil {
			s.line.Close()
			<-s.line.Done()
		}
	}
}
