package fanout_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
)

// Runs in one room have at most its hosts connected, and each at most those of its own room in it.
func TestRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		room := fanout.NewRoom(5, 1)
		var all, most [2]atomic.Int32
		var total, mostTotal atomic.Int32
		var runs sync.WaitGroup
		for i, own := range []int{0, 2} {
			runs.Go(func() {
				ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
					a.Reached(fleet.PhaseExec)
					most[i].Store(max(most[i].Load(), all[i].Add(1)))
					mostTotal.Store(max(mostTotal.Load(), total.Add(1)))
					time.Sleep(time.Second)
					all[i].Add(-1)
					total.Add(-1)
					return ran(a)
				})
				sum, err := fanout.Run(t.Context(), fanout.Params{Room: room.Within(own), Fanout: own}, names(20), fleet.Command{}, ex, &record{t: t})
				if err != nil || sum.OK != 20 {
					t.Errorf("%+v, %v", sum, err)
				}
			})
		}
		runs.Wait()
		if room.Size() != 5 || mostTotal.Load() != 5 || most[1].Load() != 2 {
			t.Errorf("%d of %d at once, %d of the inner one", mostTotal.Load(), room.Size(), most[1].Load())
		}
	})
}

// A host starts when it is permitted, and waits until then in no phase; otherwise nothing has run.
func TestPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := errors.New("not yours")
		r := &record{t: t}
		p := fanout.Params{Permit: func(ctx context.Context, index int) error {
			time.Sleep(time.Minute)
			if index == 1 {
				return no
			}
			return nil
		}}
		sum, err := fanout.Run(t.Context(), p, names(3), fleet.Command{}, fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome { return ran(a) }), r)
		if err != nil || sum.OK != 2 || sum.NotStarted != 1 {
			t.Errorf("%+v, %v", sum, err)
		}
		if yes, not := r.results[0], r.results[1]; yes.Waited != time.Minute || yes.Spent != (fleet.Spent{}) || not.Err != no.Error() || not.Ran != fleet.RanNo {
			t.Errorf("%+v, %+v", yes, not)
		}
	})
}

// When it is enough no host starts any more, and those that have started end by themselves.
func TestEnough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		enough, end := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, end)
		ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
			a.Reached(fleet.PhaseExec)
			time.Sleep(time.Minute)
			return ran(a)
		})
		sum, err := fanout.Run(t.Context(), fanout.Params{Enough: enough, Fanout: 2}, names(5), fleet.Command{}, ex, &record{t: t})
		if err != nil || sum.OK != 2 || sum.NotStarted != 3 {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}
