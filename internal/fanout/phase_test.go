package fanout_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
)

// phases is a Sink that looks how far the first host is.
type phases struct {
	fleet.Nothing
	now func(int) fleet.Phase
}

func (p *phases) Begin(s fleet.Start) error { p.now = s.Phase; return nil }

// TestPhaseNow: a sink can look how far a host is at any time; between two tries it waits.
func TestPhaseNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
			a.Reached(fleet.PhaseAuth)
			time.Sleep(time.Second)
			if time.Since(began) < 2*time.Second {
				return fleet.Outcome{Class: fleet.Refused, Exit: -1}
			}
			a.Reached(fleet.PhaseExec)
			time.Sleep(time.Minute)
			return ran(a)
		})
		var seen []fleet.Phase
		look := &phases{}
		go func() {
			for range 800 {
				time.Sleep(5 * time.Millisecond)
				if now := look.now(0); len(seen) == 0 || seen[len(seen)-1] != now {
					seen = append(seen, now)
				}
			}
		}()
		if _, err := fanout.Run(t.Context(), fanout.Params{RetryFor: time.Minute, RetryDown: true}, names(1), fleet.Command{}, ex, look); err != nil {
			t.Error(err)
		}
		if want := []fleet.Phase{fleet.PhaseAuth, fleet.PhaseQueued, fleet.PhaseAuth, fleet.PhaseExec}; !slices.Equal(seen, want) {
			t.Errorf("%v, want %v", seen, want)
		}
	})
}
