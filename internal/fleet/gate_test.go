package fleet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func never() bool { return false }

// TestGateGrowsAndCuts follows one server's window through success and refusal.
func TestGateGrowsAndCuts(t *testing.T) {
	g := newGate(0, never)
	for range startPerServer {
		admit(t, g, "a")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.admit(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Fatalf("a full window admitted another: %v", err)
	}
	g = newGate(0, never)
	for range 10 {
		admit(t, g, "a").end(loggedIn)
	}
	if got := g.server("a").limit; got != startPerServer+10 {
		t.Errorf("limit after 10 successes is %v, want %d", got, startPerServer+10)
	}
	admit(t, g, "a").end(turnedAway)
	if got := g.server("a").limit; got != (startPerServer+10)/2 {
		t.Errorf("limit after a refusal is %v, want %d", got, (startPerServer+10)/2)
	}
	admit(t, g, "a").end(loggedIn)
	if got := g.server("a").limit; got > 9.2 || got < 9 {
		t.Errorf("limit grew to %v; after a refusal it should grow by 1/limit", got)
	}
	if got := g.server("b").limit; got != startPerServer {
		t.Errorf("another server's limit is %v, want %d", got, startPerServer)
	}
}

func admit(t *testing.T, g *gate, addr string) *ticket {
	t.Helper()
	tk, err := g.admit(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	return tk
}

// TestGateManyRefusals: one server that refuses is its own matter, many are
// everybody's.
func TestGateManyRefusals(t *testing.T) {
	g := newGate(0, never)
	admit(t, g, "a").end(turnedAway)
	if g.all.limit != startLogins {
		t.Errorf("one refusal cut the common window to %v", g.all.limit)
	}
	for range 5 {
		admit(t, g, "b").end(turnedAway)
	}
	if g.all.limit != startLogins/2 {
		t.Errorf("many refusals at once: common window is %v, want one cut to %d", g.all.limit, startLogins/2)
	}
}

// TestGateBusy: a machine at its limit must not start more at once.
func TestGateBusy(t *testing.T) {
	g := newGate(0, func() bool { return true })
	admit(t, g, "a").end(loggedIn)
	if g.all.limit != startLogins {
		t.Errorf("common window grew to %v on a busy machine", g.all.limit)
	}
}

// TestClimb follows a window that meets a bottleneck of 100 logins a second,
// and one that meets none: logins of 2 s each, as far away or behind slow PAM.
func TestClimb(t *testing.T) {
	follow := func(rate func(limit float64) float64) float64 {
		var c climb
		now, limit := time.Unix(0, 0), 48.0
		for now.Before(time.Unix(20, 0)) {
			now = now.Add(time.Duration(float64(time.Second) / rate(limit)))
			if c.helps(now, limit) {
				limit++
			} else {
				limit = min(limit, c.limit)
			}
		}
		return limit
	}
	if got := follow(func(float64) float64 { return 100 }); got > 250 {
		t.Errorf("at a bottleneck the window grew to %v", got)
	}
	if got := follow(func(limit float64) float64 { return limit / 2 }); got < 4000 {
		t.Errorf("without a bottleneck the window grew to %v only", got)
	}
}

// TestGateLends: hosts that do not answer give their slot of the common window
// to others, hosts that do answer keep it.
func TestGateLends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, never)
		dead := admit(t, g, "dead")
		live := admit(t, g, "live") // only after the dead one's slot is lent
		live.alive()
		ctx, cancel := context.WithTimeout(t.Context(), lendLoginAfter-time.Millisecond)
		defer cancel()
		if _, err := g.admit(ctx, "third"); err == nil {
			t.Error("a live login's slot was lent")
		}
		dead.end(ended)
		live.end(loggedIn)
		if g.all.active != 0 {
			t.Errorf("%d slots are taken at the end", g.all.active)
		}
	})
}

// TestGateLendsWhatIsHung: servers that take the connection and say nothing give
// their slot away soon, and sooner once others have answered at once.
func TestGateLendsWhatIsHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, never)
		start := time.Now()
		for range 200 {
			admit(t, g, "hung").connected()
			g.servers = make(map[string]*window) // each is a server of its own
		}
		if took, most := time.Since(start), 200*silenceFactor*usualSilence; took > most {
			t.Errorf("200 hung servers took %v, want at most %v", took, most)
		}
		for range 20 {
			quick := admit(t, g, "quick")
			quick.connected()
			quick.alive()
			quick.end(loggedIn)
		}
		if got := g.patience(); got != shortestSilence {
			t.Errorf("after quick answers a server may be silent for %v", got)
		}
	})
}

// TestGateTakesBack: a host that answers after its slot was lent has it again,
// and nobody else is admitted until there is room.
func TestGateTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1, never)
		far := admit(t, g, "far")
		near := admit(t, g, "near")
		far.alive()
		near.end(ended)
		ctx, cancel := context.WithTimeout(t.Context(), lendLoginAfter-lendConnectAfter-time.Millisecond)
		defer cancel()
		if _, err := g.admit(ctx, "third"); err == nil {
			t.Error("a third host was admitted beside the one that answered")
		}
		far.end(loggedIn)
		if g.all.active != 0 {
			t.Errorf("%d slots are taken at the end", g.all.active)
		}
	})
}

// TestWindowIsFair: waiters are admitted in the order in which they came, and
// one that gives up does not take a slot with it.
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
