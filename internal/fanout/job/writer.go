package job

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"sshpace/internal/base/sched"
)

// errTaken says that another launcher starts the hosts of a batch.
var errTaken = errors.New("another launcher has taken the batch over")

// writer writes the journal of a batch. What comes while an entry is on its way to the hub goes
// into the next one.
type writer struct {
	bus        Bus
	subject    string
	instance   string                   // of the launcher
	idempotent bool                     // hosts may start that others have started
	id         func() string            // of an entry, a new one each time
	note       func(started Bits) error // before they start
	trouble    func(error)              // is told why the hub did not keep an entry, nil if it did
	life       context.Context
	lost       context.CancelCauseFunc // called when the batch was taken over

	wake, hurry chan struct{} // there is something to write, and somebody waits for it

	mu      sync.Mutex
	changed sync.Cond // of what follows
	seq     uint64    // of the last entry that is known
	state   State     // as of that entry
	before  string    // whose it was until it was ours
	owner   bool      // it was ours once
	taken   bool      // since then it is another's
	want    Bits      // hosts that are to start
	flying  Bits      // those of the entry that is on its way
	mine    Bits      // those that were started here
	failed  error     // of note
	lines   []byte    // to be written
	passed  int       // bytes of lines that were written
	ends    []hostEnd // to be written behind their lines
}

// hostEnd is the end of a host, whose lines end at a byte of all lines.
type hostEnd struct {
	behind, host int
	failed       bool
}

// A writer holds mostHeld bytes of lines before whoever writes more waits. An entry has at most
// mostLines of them. Hosts that start at once are gathered, entries are apart, and lines that
// nobody waits for linger, so that there are few: each costs a hub as much as what it says about
// ten hosts.
const (
	mostHeld  = 1 << 20
	mostLines = 512 << 10
	linger    = 50 * time.Millisecond
	apart     = 50 * time.Millisecond
	gather    = 2 * time.Millisecond
)

// begin reads the state of the batch.
func (w *writer) begin(ctx context.Context) error {
	w.changed.L, w.wake, w.hurry = &w.mu, make(chan struct{}, 1), make(chan struct{}, 1)
	last, err := w.bus.Last(ctx, w.subject)
	if errors.Is(err, ErrNoEntry) {
		return nil
	}
	w.learn(last)
	w.poke(w.hurry)
	return err
}

// previous returns the instance of the launcher that had the batch before this one.
func (w *writer) previous() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.before
}

func (w *writer) poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// until waits for a condition. mu is held.
func (w *writer) until(ctx context.Context, is func() bool) error {
	if is() {
		return nil
	}
	defer context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})()
	for !is() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		w.changed.Wait()
	}
	return nil
}

// Write takes whole lines. It waits while there is no room.
func (w *writer) Write(lines []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.until(w.life, func() bool { return len(w.lines) < mostHeld }); err != nil {
		return 0, err
	}
	w.lines = append(w.lines, lines...)
	w.poke(w.wake)
	return len(lines), nil
}

// start returns when the hub has kept that a host starts here.
func (w *writer) start(ctx context.Context, host int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.mine.Has(host) {
		return w.failed
	}
	if w.taken || w.others(&w.state, host) {
		return errTaken
	}
	w.want.Add(host)
	w.poke(w.hurry)
	err := w.until(ctx, func() bool { return w.mine.Has(host) || !w.want.Has(host) })
	w.want.drop(host)
	switch {
	case err != nil:
		return err
	case !w.mine.Has(host):
		return errTaken
	}
	return w.failed
}

// started reports whether a host was started here, after start has returned.
func (w *writer) started(host int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.until(w.life, func() bool { return !w.flying.Has(host) })
	return w.mine.Has(host)
}

// end notes the end of a host, whose lines have been written.
func (w *writer) end(host int, failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ends = append(w.ends, hostEnd{w.passed + len(w.lines), host, failed})
	w.poke(w.wake)
}

// flush waits until the hub has kept everything.
func (w *writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.poke(w.hurry)
	return w.until(w.life, func() bool { return len(w.lines) == 0 && len(w.ends) == 0 })
}

// now returns a copy of the state, and whether another launcher has taken the batch over.
func (w *writer) now() (s State, taken bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state.clone(), w.taken
}

// refresh reads the state of the batch anew.
func (w *writer) refresh(ctx context.Context) error {
	last, err := w.bus.Last(ctx, w.subject)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil && last.Seq > w.seq {
		w.learn(last)
	}
	return err
}

// keep writes what comes, until life ends.
func (w *writer) keep() {
	for w.life.Err() == nil {
		select {
		case <-w.hurry:
		case <-w.life.Done():
		case <-w.wake:
			select {
			case <-w.hurry:
			case <-time.After(linger):
			case <-w.life.Done():
			}
		}
		sched.For(w.life, gather)
		for f, more := w.next(); more; f, more = w.next() {
			sent := time.Now()
			err := w.send(f)
			if w.life.Err() != nil {
				return
			}
			if w.trouble(err); err != nil {
				sched.For(w.life, again)
			}
			sched.Until(w.life, sent.Add(apart))
		}
	}
}

// flight is an entry on its way.
type flight struct {
	after       uint64
	state       State
	started     Bits
	lines       []byte
	ends        int
	takes, owns bool // whether it is the first of a launcher that takes the batch; it is its own
}

// next returns what the next entry has; more is false if there is nothing.
func (w *writer) next() (f flight, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f = flight{after: w.seq, state: w.state.clone(), lines: w.lines, owns: !w.taken}
	if len(f.lines) > mostLines {
		f.lines = f.lines[:bytes.LastIndexByte(f.lines[:mostLines], '\n')+1]
	}
	for _, e := range w.ends {
		if e.behind > w.passed+len(f.lines) {
			break
		}
		f.ends++
		f.state.Ended.Add(e.host)
		if e.failed {
			f.state.Failed.Add(e.host)
		}
	}
	if f.owns {
		f.started, f.takes = slices.Clone(w.want), !w.owner && w.seq > 0
		f.state.Owner = w.instance
		f.state.Started.Join(f.started)
	}
	w.flying = f.started
	return f, f.takes || f.ends > 0 || len(f.lines) > 0 || f.started.Count() > 0
}

// send has the hub keep an entry. What it does not keep stays to be written.
func (w *writer) send(f flight) error {
	seq, err := w.bus.Append(w.life, Entry{Subject: w.subject, Header: f.state.header(), Data: f.lines}, f.after, w.id())
	var noted error
	if err == nil && f.started.Count() > 0 {
		noted = w.note(f.started)
	}
	var last Entry
	conflict := errors.Is(err, ErrConflict)
	if conflict {
		if last, err = w.bus.Last(w.life, w.subject); errors.Is(err, ErrNoEntry) {
			err = nil // the hub has lost it
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.changed.Broadcast()
	w.flying = nil
	switch {
	case err != nil:
		return err
	case conflict:
		w.learn(last)
		return nil
	}
	w.seq, w.state = seq, f.state
	w.owner = w.owner || f.owns
	w.mine.Join(f.started)
	w.failed = errors.Join(w.failed, noted)
	w.ends = w.ends[f.ends:]
	w.passed += len(f.lines)
	if w.lines = w.lines[len(f.lines):]; len(w.lines) == 0 {
		w.lines = nil
	}
	return nil
}

// others reports whether a host, which was not started here, may not start here either.
func (w *writer) others(s *State, host int) bool {
	return s.Ended.Has(host) || s.Started.Has(host) && !w.idempotent
}

// learn adds what another writer has written; nothing, if the hub has lost the journal. mu is held.
func (w *writer) learn(last Entry) {
	if w.seq = last.Seq; last.Seq == 0 {
		return
	}
	s, _ := stateOf(last.Header) // of a hub that lies there is nothing to learn
	w.state.Owner = s.Owner
	if !w.owner {
		w.before = s.Owner
	}
	w.state.Started.Join(s.Started)
	w.state.Ended.Join(s.Ended)
	w.state.Failed.Join(s.Failed)
	for i := range 8 * len(w.want) {
		if w.others(&s, i) {
			w.want.drop(i)
		}
	}
	if w.owner && s.Owner != w.instance && !w.taken {
		w.taken, w.want = true, nil
		w.lost(errTaken)
	}
	w.changed.Broadcast()
}
