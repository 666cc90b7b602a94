// Package sched is work in time: pieces of it at once, an answer that many wait for, rounds
// within a budget, and how much is worth having under way, by the rule of TCP Vegas (Brakmo
// and Peterson, 1995). What the work is it does not know.
package sched

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// For waits; false says that ctx has ended.
func For(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// Poll looks so often until done says so, for so long at most.
func Poll(ctx context.Context, limit, every time.Duration, done func() bool) error {
	for end := time.Now().Add(limit); !done(); {
		if time.Now().After(end) {
			return context.DeadlineExceeded
		}
		if !For(ctx, every) {
			return context.Cause(ctx)
		}
	}
	return nil
}

// Await is what f returns, unless ctx ends before. Nothing ends an open(2) or a read(2): f is left
// behind then.
func Await[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := f()
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// After calls f when grace has passed since the end of ctx, for what is to come to its
// own end before that. stop prevents it; false says that f is called, or was.
func After(ctx context.Context, grace func() time.Duration, f func()) (stop func() bool) {
	var decided atomic.Bool
	stopped := make(chan struct{})
	unhook := context.AfterFunc(ctx, func() {
		t := time.NewTimer(grace())
		defer t.Stop()
		select {
		case <-t.C:
			if decided.CompareAndSwap(false, true) {
				f()
			}
		case <-stopped:
		}
	})
	return sync.OnceValue(func() bool {
		unhook()
		inTime := decided.CompareAndSwap(false, true)
		if inTime {
			close(stopped)
		}
		return inTime
	})
}

// Until waits for a point in time; false says that ctx has ended.
func Until(ctx context.Context, at time.Time) bool { return For(ctx, time.Until(at)) }

// Pace keeps what is done one after the other so far apart, from the end of one to the beginning
// of the next.
type Pace struct {
	Apart time.Duration
	ended time.Time // the last one
}

// Await waits until the next one is due; false says that ctx has ended.
func (p *Pace) Await(ctx context.Context) bool { return Until(ctx, p.ended.Add(p.Apart)) }

// Ended says that one has.
func (p *Pace) Ended() {
	if p.Apart > 0 { // else many may go on at a time
		p.ended = time.Now()
	}
}

// Turns gives whoever asks a turn. The zero value has given none.
type Turns struct {
	mu   sync.Mutex
	next time.Time
}

// Take takes a turn of such a length, and says when it begins.
func (t *Turns) Take(length time.Duration) (begins time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begins = time.Now()
	if t.next.After(begins) {
		begins = t.next
	}
	t.next = begins.Add(length)
	return begins
}

// Wait waits for a turn of such a length.
func (t *Turns) Wait(ctx context.Context, length time.Duration) { Until(ctx, t.Take(length)) }
