package keep

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// TestBackoff: a lost host is tried again after a second at most, then ever more seldom, with
// jitter, and every five minutes in the end.
func TestBackoff(t *testing.T) {
	for tries := range 1000 {
		most := min(time.Second<<min(tries, 20), 5*time.Minute)
		if d := backoff(tries); d < most/2 || d > most {
			t.Errorf("%d tries: %v, want %v to %v", tries, d, most/2, most)
		}
	}
}

// TestPasses: a refused login is not made again unasked.
func TestPasses(t *testing.T) {
	for c, want := range map[fleet.Class]bool{
		fleet.Refused: true, fleet.TimedOut: true, fleet.Throttled: true, fleet.NameFailed: true, fleet.Unroutable: true, fleet.Lost: true,
		fleet.AuthFailed: false, fleet.HostKeyChanged: false, fleet.HostKeyUnknown: false, fleet.HostKeyRevoked: false, fleet.Local: false,
	} {
		if passes(c) != want {
			t.Errorf("%v: %v", c, !want)
		}
	}
}

// waiting makes a Keeper of hosts that are lost.
func waiting(t *testing.T, p Params, states ...State) *Keeper {
	k := New(t.Context(), p)
	for i, s := range states {
		h := host.Host{Name: string(rune('a' + i))}
		k.places[h.Name] = &place{host: h, state: s, due: time.Now().Add(time.Minute * time.Duration(i+1))}
	}
	return k
}

// TestFor: --for is the hard end, whatever the clock of the computer does; without a host there is
// nothing to hold.
func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		waiting(t, Params{For: 8 * time.Hour}, Waiting).Hold()
		if took := time.Since(began); took != 8*time.Hour {
			t.Errorf("it held for %v", took)
		}
		waiting(t, Params{}).Hold()
		if took := time.Since(began); took != 8*time.Hour {
			t.Errorf("without hosts it held on: %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		k := waiting(t, Params{}, Waiting)
		k.life = ctx
		k.Hold()
	})
	k := New(t.Context(), Params{For: time.Hour})
	k.began = time.Now().Round(0).Add(-2 * time.Hour) // the computer has slept
	k.places["a"] = &place{state: Waiting}
	k.Hold()
}

// TestDue: hosts are tried when their time has come, those that wait for a person never.
func TestDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := waiting(t, Params{}, Back, Back, Waiting)
		for minute, want := range []string{"", "a", "ab", "ab"} {
			due, next, any := k.due()
			got := ""
			for _, h := range due {
				got += h.Name
			}
			if len(got) != len(want) || !any || time.Until(next) > lookAgain {
				t.Errorf("minute %d: %q, want %q; next in %v", minute, got, want, time.Until(next))
			}
			time.Sleep(time.Minute)
		}
	})
}
