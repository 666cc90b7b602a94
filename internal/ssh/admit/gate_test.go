package admit

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// TestGateGrowsAndCuts follows one server's window through success and refusal.
func TestGateGrowsAndCuts(t *testing.T) {
	g := New(Limits{})
	for range fewLogins {
		admit(t, g, "a")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Ticket().Admit(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Fatalf("a full window admitted another: %v", err)
	}
	g = New(Limits{})
	for range 10 {
		admit(t, g, "a").LoggedIn()
	}
	if got := g.server("a").limit; got != fewLogins+10 {
		t.Errorf("limit after 10 successes is %v, want %d", got, fewLogins+10)
	}
	admit(t, g, "a").End(TurnedAway)
	if got := g.server("a").limit; got != (fewLogins+10)/2 {
		t.Errorf("limit after a refusal is %v, want %d", got, (fewLogins+10)/2)
	}
	admit(t, g, "a").LoggedIn()
	if got := g.server("a").limit; got > 9.2 || got < 9 {
		t.Errorf("limit grew to %v; after a refusal it should grow by 1/limit", got)
	}
	if got := g.server("b").limit; got != fewLogins {
		t.Errorf("another server's limit is %v, want %d", got, fewLogins)
	}
}

func admit(t *testing.T, g *Gate, addr string) *Ticket {
	t.Helper()
	ticket := g.Ticket()
	if err := ticket.Admit(t.Context(), addr); err != nil {
		t.Fatal(err)
	}
	return ticket
}

// TestGateManyRefusals: one server that refuses is its own matter, many are everybody's.
func TestGateManyRefusals(t *testing.T) {
	g := New(Limits{})
	admit(t, g, "a").End(TurnedAway)
	if g.all.limit != startLogins {
		t.Errorf("one refusal cut the common window to %v", g.all.limit)
	}
	for range 5 {
		admit(t, g, "b").End(TurnedAway)
	}
	if g.all.limit != startLogins/2 {
		t.Errorf("many refusals at once: common window is %v, want one cut to %d", g.all.limit, startLogins/2)
	}
}

// TestGateLends: hosts that do not answer give their slot of the common window to others, hosts
// that do answer keep it.
func TestGateLends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Most: 1})
		dead := admit(t, g, "dead")
		dead.Reached(Connecting)
		start := time.Now()
		live := admit(t, g, "live") // only after the dead one's slot is lent
		if took := time.Since(start); took != lendTimes[Connecting].unknown {
			t.Errorf("a slot was lent after %v", took)
		}
		live.Reached(Speaking)
		ctx, cancel := context.WithTimeout(t.Context(), lendTimes[Speaking].unknown-time.Millisecond)
		defer cancel()
		if err := g.Ticket().Admit(ctx, "third"); err == nil {
			t.Error("a live login's slot was lent")
		}
		dead.End(Done)
		live.LoggedIn()
		if g.all.active != 0 {
			t.Errorf("%d slots are taken at the end", g.all.active)
		}
	})
}

// TestGateLendsWhatIsHung: servers that take the connection and say nothing give their slot away
// soon once others have answered at once, and where all are slow they are waited for.
func TestGateLendsWhatIsHung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Most: 1})
		answer := func(after time.Duration) {
			for range 20 {
				one := admit(t, g, "one")
				one.Reached(Connected)
				time.Sleep(after)
				one.Reached(Speaking)
				one.LoggedIn()
			}
		}
		answer(5 * time.Second)
		if got := g.lendAfter(Connected); got < 10*time.Second {
			t.Errorf("after slow answers a server may be silent for %v", got)
		}
		for range 5 {
			answer(time.Millisecond)
		}
		start := time.Now()
		for range 200 {
			admit(t, g, "hung").Reached(Connected)
			g.servers = make(map[string]*window) // each is a server of its own
		}
		if took, most := time.Since(start), 200*lendTimes[Connected].least; took > most {
			t.Errorf("200 hung servers took %v, want at most %v", took, most)
		}
	})
}

// TestGateTakesBack: a host that answers after its slot was lent has it again, and nobody else is
// admitted until there is room.
func TestGateTakesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{Most: 1})
		far := admit(t, g, "far")
		far.Reached(Connecting)
		near := admit(t, g, "near")
		far.Reached(Connected)
		near.End(Done)
		ctx, cancel := context.WithTimeout(t.Context(), lendTimes[Connecting].least)
		defer cancel()
		if err := g.Ticket().Admit(ctx, "third"); err == nil {
			t.Error("a third host was admitted beside the one that answered")
		}
		far.LoggedIn()
		if g.all.active != 0 {
			t.Errorf("%d slots are taken at the end", g.all.active)
		}
	})
}

// TestTicket: an attempt has one login under way at most, its ends count once, and a nil ticket
// admits.
func TestTicket(t *testing.T) {
	g := New(Limits{Most: 1})
	ticket := admit(t, g, "jump")
	for range 2 { // its own place is the one that is waited for
		if err := ticket.Admit(t.Context(), "host"); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		ticket.LoggedIn()
	}
	ticket.End(TurnedAway)
	if _, active := g.all.size(); active != 0 || g.underWay != 0 || g.turned != 0 {
		t.Errorf("%d slots are taken, %d logins are under way, %v were turned away", active, g.underWay, g.turned)
	}
	if _, again := ticket.Again(); !again {
		t.Error("a session that was turned away is not tried again")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	none := (*Ticket)(nil)
	none.End(TurnedAway)
	if err := none.Admit(t.Context(), "a"); err != nil || none.Admit(ended, "a") == nil {
		t.Errorf("a nil ticket: %v", err)
	}
}

// TestOneByOne: logins to a host are apart, also where other hosts come between them. One that
// turns them away is asked again ever later, and not a ninth time.
func TestOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, began := New(OneByOne(time.Second)), time.Now()
		for i, want := range []time.Duration{0, time.Minute + time.Second, 2 * (time.Minute + time.Second)} {
			login := admit(t, g, "host")
			if at := time.Since(began); at != want {
				t.Errorf("login %d began after %v, want %v", i+1, at, want)
			}
			time.Sleep(time.Minute)
			login.End(Done)
			other := admit(t, g, fmt.Sprint("other", i))
			if at := time.Since(began); at != want+time.Minute {
				t.Errorf("another host was logged in to after %v, want %v", at, want+time.Minute)
			}
			other.End(Done)
		}
		ticket := g.Ticket()
		for turned := 1; turned <= 16; turned++ {
			began := time.Now()
			if err := ticket.Admit(t.Context(), "full"); err != nil {
				t.Fatal(err)
			}
			want := time.Duration(0)
			if n := (turned - 1) % 8; n > 0 {
				want = min(time.Second<<(n-1), 4*time.Second)
			}
			if waited := time.Since(began); waited < want || waited > want+time.Second {
				t.Errorf("attempt %d waited %v, want %v", turned, waited, want)
			}
			ticket.End(TurnedAway)
			if _, again := ticket.Again(); again != (turned%8 != 0) {
				t.Errorf("after %d that were turned away: again %v", turned, again)
			}
			if turned%8 == 0 { // another end than that begins anew
				ticket.End(Done)
			}
		}
	})
}

// TestMostLogins: a few at once, and as many again in each 20 s.
func TestMostLogins(t *testing.T) {
	for elapsed, want := range map[time.Duration]int{0: 12, 20 * time.Second: 12, 30 * time.Second: 18, time.Minute: 36} {
		if got := MostLogins(elapsed); got != want {
			t.Errorf("%d logins in %v, want %d", got, elapsed, want)
		}
	}
}
