package sched

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestFor: the time passes, or ctx ends it; what has ended already is not taken for time that has
// passed.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if !For(t.Context(), time.Minute) || time.Since(began) != time.Minute {
			t.Errorf("a minute was %v", time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if Until(ctx, time.Now().Add(time.Hour)) || time.Since(began) != time.Minute+time.Second {
			t.Errorf("a context of a second ended it after %v", time.Since(began)-time.Minute)
		}
		if For(ctx, 0) {
			t.Error("the end of the context was not told")
		}
	})
}

// TestAfter: what ends by itself within the grace is left alone, what does not is ended.
func TestAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grace := func() time.Duration { return time.Second }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan time.Time, 1)
		stop := After(ctx, grace, func() { ended <- time.Now() })
		inTime := After(ctx, grace, func() { t.Error("it was stopped") })
		cancel()
		began := time.Now()
		time.Sleep(time.Second / 2)
		for range 2 { // the answer is the same
			if !inTime() {
				t.Error("stopped too late")
			}
		}
		if at := <-ended; at.Sub(began) != time.Second || stop() {
			t.Errorf("ended after %v", at.Sub(began))
		}
	})
}

// TestTogether: one search for all who wait, which ends with the last of them.
func TestTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		searches := 0
		shared := &Together[int]{Find: func(ctx context.Context) (int, error) {
			searches++
			return searches, func() error {
				if !For(ctx, time.Minute) {
					return ctx.Err()
				}
				return nil
			}()
		}}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if n, err := shared.Get(soon); n != 0 || err != context.DeadlineExceeded {
			t.Errorf("got %d, %v", n, err)
		}
		synctest.Wait()
		later := make(chan int)
		for range 3 {
			go func() { n, _ := shared.Get(t.Context()); later <- n }()
		}
		soon, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := shared.Get(soon); err != context.DeadlineExceeded {
			t.Errorf("got %v", err)
		}
		for range 3 {
			if n := <-later; n != 2 {
				t.Errorf("search %d", n)
			}
		}
		if n, err := shared.Get(soon); n != 2 || err != nil || searches != 2 {
			t.Errorf("what was found is forgotten: %d, %v", n, err)
		}
	})
}
