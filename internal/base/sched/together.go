package sched

import (
	"context"
	"sync"
	"time"
)

// Together is an answer that is found once, for everybody who asks. The search runs as long as
// anybody waits: when the last one gives up, it is cancelled, and the next caller starts a new one.
// The last one waits for the end of the search, which may have to end processes that would
// otherwise outlive ours.
type Together[T any] struct {
	Find func(context.Context) (T, error)

	mu     sync.Mutex
	search *search[T]
}

type search[T any] struct {
	end     context.CancelFunc
	waiting int
	found   chan struct{} // closed when the answer is there
	answer  T
	err     error
}

// ending is the longest wait for the end of a cancelled search.
const ending = 500 * time.Millisecond

// Get waits for the answer, or for the end of ctx.
func (t *Together[T]) Get(ctx context.Context) (T, error) {
	s := t.join(ctx)
	select {
	case <-s.found:
	case <-ctx.Done():
	}
	if t.leave(s) {
		return s.answer, s.err
	}
	var none T
	return none, context.Cause(ctx)
}

// leave ends the wait of one caller, and reports whether the search had found its answer by then.
// The last caller who leaves earlier cancels the search.
func (t *Together[T]) leave(s *search[T]) (found bool) {
	t.mu.Lock()
	s.waiting--
	last := s.waiting == 0
	select {
	case <-s.found:
		t.mu.Unlock()
		return true
	default:
	}
	if last && t.search == s {
		t.search = nil
	}
	t.mu.Unlock()
	if last {
		s.end()
		limit := time.NewTimer(ending)
		defer limit.Stop()
		select {
		case <-s.found:
		case <-limit.C:
		}
	}
	return false
}

// join takes part in the running or finished search, or begins one.
func (t *Together[T]) join(ctx context.Context) *search[T] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.search == nil {
		s := &search[T]{found: make(chan struct{})}
		ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
		t.search = s
		go func() {
			defer s.end()
			s.answer, s.err = t.Find(ctx)
			close(s.found)
		}()
	}
	t.search.waiting++
	return t.search
}
