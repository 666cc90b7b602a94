package wait

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestFor: the time passes, or ctx ends it; what has ended already is not taken for
// time that has passed.
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
