package fleet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestGateGrowsAndCuts follows one server's window through success and refusal.
func TestGateGrowsAndCuts(t *testing.T) {
	g := newGate(0)
	for range fewLogins {
		admit(t, g, "a")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.admit(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Fatalf("a full window admitted another: %v", err)
	}
	g = newGate(0)
	for range 10 {
		admit(t, g, "a").end(loggedIn)
	}
	if got := g.server("a").limit; got != fewLogins+10 {
		t.Errorf("limit after 10 successes is %v, want %d", got, fewLogins+10)
	}
	admit(t, g, "a").end(turnedAway)
	if got := g.server("a").limit; got != (fewLogins+10)/2 {
		t.Errorf("limit after a refusal is %v, want %d", got, (fewLogins+10)/2)
	}
	admit(t, g, "a").end(loggedIn)
	if got := g.server("a").limit; got > 9.2 || got < 9 {
		t.Errorf("limit grew to %v; after a refusal it should grow by 1/limit", got)
	}
	if got := g.server("b").limit; got != fewLogins {
		t.Errorf("another server's limit is %v, want %d", got, fewLogins)
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
	g := newGate(0)
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

// TestGateLends: hosts that do not answer give their slot of the common window
// to others, hosts that do answer keep it.
func TestGateLends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		dead := admit(t, g, "dead")
		dead.reach(connecting)
		start := time.Now()
		live := admit(t, g, "live") // only after the dead one's slot is lent
		if took := time.Since(start); took != patience[connecting].unknown {
			t.Errorf("a slot was lent after %v", took)
		}
		live.reach(speaking)
		ctx, cancel := context.WithTimeout(t.Context(), patience[speaking].unknown-time.Millisecond)
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
// their slot away soon once others have answered at once, and where all are slow they
// are waited for.
func TestGateLendsWhatIsHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		answer := func(after time.Duration) {
			for range 20 {
				one := admit(t, g, "one")
				one.reach(silent)
				time.Sleep(after)
				one.reach(speaking)
				one.end(loggedIn)
			}
		}
		answer(5 * time.Second)
		if got := g.patience(silent); got < 10*time.Second {
			t.Errorf("after slow answers a server may be silent for %v", got)
		}
		for range 5 {
			answer(time.Millisecond)
		}
		start := time.Now()
		for range 200 {
			admit(t, g, "hung").reach(silent)
			g.servers = make(map[string]*window) // each is a server of its own
		}
		if took, most := time.Since(start), 200*patience[silent].least; took > most {
			t.Errorf("200 hung servers took %v, want at most %v", took, most)
		}
	})
}

// TestGateTakesBack: a host that answers after its slot was lent has it again,
// and nobody else is admitted until there is room.
func TestGateTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(1)
		far := admit(t, g, "far")
		far.reach(connecting)
		near := admit(t, g, "near")
		far.reach(silent)
		near.end(ended)
		ctx, cancel := context.WithTimeout(t.Context(), patience[connecting].least)
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
