package wait

import (
	"context"
	"sync"
)

// Together is an answer that is found once, for all who ask for it. It is looked for as
// long as anybody waits: when the last one has given up, so does the search, and whoever
// asks then begins anew.
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

// Get waits for the answer, or for the end of ctx.
func (t *Together[T]) Get(ctx context.Context) (T, error) {
	s := t.join(ctx)
	select {
	case <-s.found:
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s.waiting--
	select {
	case <-s.found:
		return s.answer, s.err
	default:
	}
	if s.waiting == 0 {
		s.end()
		if t.search == s {
			t.search = nil
		}
	}
	var none T
	return none, context.Cause(ctx)
}

// join takes part in the search that goes on or is over, or begins one.
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
