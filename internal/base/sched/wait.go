// Package sched is work in time: pieces of it in parallel, an answer that many wait for, rounds
// within a budget, and how much to keep in flight, by the rule of TCP Vegas (Brakmo and Peterson,
// 1995). It knows nothing about the work.
package sched

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// For waits for d; it returns false if ctx ends earlier.
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

// Poll calls done every interval until it returns true, for limit at most.
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

// Await returns the result of f, unless ctx ends earlier. Nothing ends an open(2) or a read(2): f
// is abandoned then.
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

// After calls f when grace has passed since the end of ctx, so that work can end by itself before
// that. stop prevents it; stop returns false if f is called, or was.
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

// Until waits for a point in time; it returns false if ctx ends earlier.
func Until(ctx context.Context, at time.Time) bool { return For(ctx, time.Until(at)) }

// Turns hands out turns one after the other. The zero value has given none.
type Turns struct {
	mu   sync.Mutex
	next time.Time
}

// Take reserves a turn of the given length and returns its beginning.
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

// Wait waits for a turn of the given length.
func (t *Turns) Wait(ctx context.Context, length time.Duration) { Until(ctx, t.Take(length)) }
