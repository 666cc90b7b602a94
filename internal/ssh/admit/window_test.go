package admit

import (
	"context"
	"testing"
	"testing/synctest"
)

// TestWindowIsFair: waiters are admitted in the order in which they came, and one that gives up
// does not take a slot with it.
func TestWindowIsFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &window{limit: 1, floor: 1, top: 1}
		if err := w.acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		quitter, quit := context.WithCancel(t.Context())
		var order []int
		for i := range 4 {
			ctx := t.Context()
			if i == 1 {
				ctx = quitter
			}
			go func() {
				if w.acquire(ctx) == nil {
					order = append(order, i)
					w.release()
				}
			}()
			synctest.Wait()
		}
		quit()
		synctest.Wait()
		w.release()
		synctest.Wait()
		if len(order) != 3 || order[0] != 0 || order[1] != 2 || order[2] != 3 {
			t.Errorf("admitted in the order %v, want [0 2 3]", order)
		}
		if w.active != 0 {
			t.Errorf("%d slots are taken at the end", w.active)
		}
	})
}
