package fanout_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/sshtest"
)

// fake is an Executor that does what a function says.
type fake func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome

func (fake) FDs() int { return 1 }

func (f fake) Execute(ctx context.Context, h host.Host, _ fleet.Command, a fleet.Attempt) fleet.Outcome {
	if err := a.Admit(ctx, h.Name); err != nil {
		return fleet.Outcome{Class: fleet.Cancelled, Exit: -1, Err: err.Error()}
	}
	return f(ctx, h, a)
}

// ran is the Outcome of a command that ended with 0.
func ran(a fleet.Attempt) fleet.Outcome {
	a.Reached(fleet.PhaseExec)
	a.Reached(fleet.PhaseExit)
	return fleet.Outcome{Ran: fleet.RanYes}
}

func names(n int) []host.Host {
	out := make([]host.Host, n)
	for i := range out {
		out[i] = host.Host{Name: fmt.Sprintf("h%d", i)}
	}
	return out
}

// record is a Sink that checks the rules of one.
type record struct {
	fleet.Nothing
	t       *testing.T
	busy    atomic.Bool
	results map[int]fleet.Result
	output  func(fleet.Event) error
	order   []string // begin, end, and when the first host started
	most    int      // hosts that waited at once
}

func (r *record) Begin(fleet.Start) error {
	defer r.enter()()
	r.order = append(r.order, "begin")
	return nil
}

func (r *record) Started(index int) error {
	defer r.enter()()
	if _, done := r.results[index]; done || len(r.order) == 0 {
		r.t.Errorf("host %d starts after its end, or before the beginning", index)
	}
	return nil
}

func (r *record) Waiting(hosts int) {
	defer r.enter()()
	r.most = max(r.most, hosts)
}

func (r *record) End(so fleet.Summary) error {
	defer r.enter()()
	r.order = append(r.order, "end")
	if so.Total() != len(r.results) {
		r.t.Errorf("%d hosts are counted, %d have ended", so.Total(), len(r.results))
	}
	return nil
}

func (r *record) enter() func() {
	if !r.busy.CompareAndSwap(false, true) {
		r.t.Error("calls of the sink overlap")
	}
	return func() { r.busy.Store(false) }
}

func (r *record) Output(e fleet.Event) error {
	defer r.enter()()
	if _, done := r.results[e.Index]; done {
		r.t.Errorf("output of %s after its end", e.Host)
	}
	if r.output != nil {
		return r.output(e)
	}
	return nil
}

func (r *record) Done(x fleet.Result, so fleet.Summary) error {
	defer r.enter()()
	if r.results == nil {
		r.results = make(map[int]fleet.Result)
	}
	if _, twice := r.results[x.Index]; twice {
		r.t.Errorf("%v ended twice", x.Host)
	}
	r.results[x.Index] = x
	if so.Total() != len(r.results) {
		r.t.Errorf("%d hosts are counted, %d have ended", so.Total(), len(r.results))
	}
	return nil
}

// TestEveryHostEndsOnce throws random faults at a run: every host is reported exactly once, and
// none is tried again once its command may have run.
func TestEveryHostEndsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 60).Draw(rt, "hosts")
		most := rapid.IntRange(0, 8).Draw(rt, "fanout")
		seed := rapid.Uint32().Draw(rt, "seed")
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			started := map[string]int{}
			running, peak := 0, 0
			ex := fake(func(_ context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
				mu.Lock()
				running++
				peak = max(peak, running)
				seed = seed*1664525 + 1013904223
				dice := seed >> 24
				mu.Unlock()
				time.Sleep(time.Duration(dice) * time.Millisecond)
				defer func() { mu.Lock(); running--; mu.Unlock() }()
				switch {
				case dice < 60:
					return fleet.Outcome{Class: fleet.Throttled, Exit: -1, SlowDown: true}
				case dice < 90:
					return fleet.Outcome{Class: fleet.Refused, Exit: -1}
				}
				mu.Lock()
				started[h.Name]++
				mu.Unlock()
				a.Reached(fleet.PhaseExec)
				a.Output(fleet.Stdout, []byte("x"))
				if dice < 120 {
					return fleet.Outcome{Ran: fleet.RanUnknown, Class: fleet.Lost, Exit: -1, SlowDown: true}
				}
				return fleet.Outcome{Ran: fleet.RanYes, Exit: int(dice & 1)}
			})
			rec := &record{t: t}
			sum, err := fanout.Run(t.Context(), fanout.Params{Fanout: most}, names(n), fleet.Command{}, ex, rec)
			if err != nil || len(rec.results) != n || sum.Total() != n {
				t.Errorf("%d of %d hosts ended, %+v, %v", len(rec.results), n, sum, err)
			}
			for name, times := range started {
				if times > 1 {
					t.Errorf("%s: the command was started %d times", name, times)
				}
			}
			if most > 0 && peak > most {
				t.Errorf("%d hosts at once, -f is %d", peak, most)
			}
		})
	})
}

// TestSecondLogin: a host that is logged in to twice, as one behind a jump host is, or one that ssh
// gets after our own engine, does not wait for its own first login.
func TestSecondLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := fake(func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
			a.Alive()
			if err := a.Admit(ctx, h.Name); err != nil {
				t.Error(err)
			}
			a.Reached(fleet.PhaseExec)
			return ran(a)
		})
		sum, err := fanout.Run(t.Context(), fanout.Params{Fanout: 1}, names(3), fleet.Command{}, ex, &record{t: t})
		if err != nil || sum.OK != 3 || sum.Elapsed != 0 {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// TestDrain: what runs is ended, what has not begun is not started, and all of it is reported.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain, interrupt := context.WithCancel(t.Context())
		ex := fake(func(ctx context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
			a.Reached(fleet.PhaseExec)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), fleet.ErrInterrupted) || a.Abort().Err() != nil {
				t.Errorf("cause %v, abort %v", context.Cause(ctx), a.Abort().Err())
			}
			return fleet.Outcome{Ran: fleet.RanYes, Class: fleet.Cancelled, Exit: -1}
		})
		time.AfterFunc(time.Minute, interrupt)
		rec := &record{t: t}
		sum, err := fanout.Run(t.Context(), fanout.Params{Fanout: 3, Drain: drain}, names(10), fleet.Command{}, ex, rec)
		if err != nil || sum.Failed != 3 || sum.NotStarted != 7 || sum.Elapsed != time.Minute {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// TestRestart: where connections were lost, hosts that refuse are tried again for a while, and
// those that lost their command are not; elsewhere a closed port is told at once.
func TestRestart(t *testing.T) {
	for _, restarted := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			start, tries := time.Now(), 0
			ex := fake(func(_ context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
				if h.Name == names(1)[0].Name {
					tries++
					a.Reached(fleet.PhaseExec)
					time.Sleep(time.Second)
					if restarted {
						return fleet.Outcome{Ran: fleet.RanYes, Class: fleet.Lost, Exit: -1}
					}
					return fleet.Outcome{Ran: fleet.RanYes}
				}
				if time.Since(start) < time.Second {
					time.Sleep(2 * time.Second)
				}
				if time.Since(start) < 6*time.Second {
					return fleet.Outcome{Class: fleet.Refused, Exit: -1}
				}
				return fleet.Outcome{Ran: fleet.RanYes}
			})
			rec := &record{t: t}
			sum, err := fanout.Run(t.Context(), fanout.Params{}, names(10), fleet.Command{}, ex, rec)
			if err != nil || tries != 1 {
				t.Errorf("%v; %d tries", err, tries)
			}
			if restarted && (sum.OK != 9 || sum.Failed != 1) || !restarted && (sum.Unreachable != 9 || sum.Elapsed > 2*time.Second) {
				t.Errorf("restarted: %v: %+v", restarted, sum)
			}
			for _, r := range rec.results {
				if r.Class == fleet.Lost && r.Ran != fleet.RanUnknown {
					t.Errorf("lost, and ran: %v", r.Ran)
				}
			}
		})
	}
}

// TestAbort: the end of the run's own context drops everything.
func TestAbort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, abort := context.WithCancel(t.Context())
		ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
			a.Reached(fleet.PhaseExec)
			<-a.Abort().Done()
			return fleet.Outcome{Ran: fleet.RanYes, Class: fleet.Cancelled, Exit: -1}
		})
		time.AfterFunc(time.Minute, abort)
		sum, err := fanout.Run(ctx, fanout.Params{}, names(10), fleet.Command{}, ex, &record{t: t})
		if !errors.Is(err, context.Canceled) || sum.Failed != 10 {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// TestCommandTimeout starts to count when the command does.
func TestCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := fake(func(ctx context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
			a.Reached(fleet.PhaseConnect)
			time.Sleep(time.Hour)
			a.Reached(fleet.PhaseExec)
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), fleet.ErrCommandTimeout) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
			return fleet.Outcome{Ran: fleet.RanYes, Class: fleet.CommandTimeout, Exit: -1}
		})
		rec := &record{t: t}
		if _, err := fanout.Run(t.Context(), fanout.Params{CommandTimeout: 5 * time.Second}, names(1), fleet.Command{}, ex, rec); err != nil {
			t.Error(err)
		}
		r := rec.results[0]
		if r.Elapsed != time.Hour+5*time.Second || r.Spent[fleet.PhaseConnect] != time.Hour || r.Spent[fleet.PhaseExec] != 5*time.Second {
			t.Errorf("got %+v", r)
		}
	})
}

// TestPhaseBehindStuckOutput: an attempt goes on, and its command ends in time, although nobody
// takes its output.
func TestPhaseBehindStuckOutput(t *testing.T) {
	came, ended := make(chan struct{}), make(chan struct{})
	ex := fake(func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
		if err := a.Admit(ctx, h.Name); err != nil {
			t.Error(err)
		}
		go a.Output(fleet.Stdout, []byte("x"))
		<-came
		a.Reached(fleet.PhaseExec)
		<-ctx.Done()
		close(ended)
		return fleet.Outcome{Ran: fleet.RanYes, Class: fleet.CommandTimeout, Exit: -1}
	})
	rec := &record{t: t, output: func(fleet.Event) error {
		close(came)
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Error("the command waits for its output")
		}
		return nil
	}}
	if _, err := fanout.Run(t.Context(), fanout.Params{CommandTimeout: time.Millisecond}, names(1), fleet.Command{}, ex, rec); err != nil {
		t.Error(err)
	}
}

// TestSinkFails: a closed or full output ends the run, signals what runs, and still reports every
// host.
func TestSinkFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := fake(func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
			a.Reached(fleet.PhaseExec)
			if h.Name == "h1" {
				time.Sleep(time.Second)
				if a.Output(fleet.Stdout, []byte("x")) == nil {
					t.Error("Output did not return the sink's error")
				}
			}
			<-ctx.Done()
			return fleet.Outcome{Ran: fleet.RanYes, Class: fleet.Cancelled, Exit: -1}
		})
		rec := &record{t: t, output: func(fleet.Event) error { return syscall.ENOSPC }}
		sum, err := fanout.Run(t.Context(), fanout.Params{Fanout: 3}, names(10), fleet.Command{}, ex, rec)
		if !errors.Is(err, syscall.ENOSPC) || len(rec.results) != 10 || sum.NotStarted != 7 {
			t.Errorf("%d results, %+v, %v", len(rec.results), sum, err)
		}
	})
}

// TestRetryDown: a host that is down is waited for where somebody says so, as long as that, and a
// command that may have run is not run again.
func TestRetryDown(t *testing.T) {
	for _, tt := range []struct {
		name     string
		p        fanout.Params
		down     time.Duration
		ran      fleet.Ran
		ok, once bool
	}{
		{name: "back in time", p: fanout.Params{RetryFor: time.Minute, RetryDown: true}, down: 50 * time.Second, ok: true},
		{name: "too late", p: fanout.Params{RetryFor: time.Minute, RetryDown: true}, down: 2 * time.Minute},
		{name: "not asked for", p: fanout.Params{RetryFor: time.Minute}, down: time.Second, once: true},
		{name: "may have run", p: fanout.Params{RetryFor: time.Minute, RetryDown: true}, down: time.Second, ran: fleet.RanUnknown, once: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
				if time.Since(began) < tt.down {
					return fleet.Outcome{Class: fleet.Refused, Ran: tt.ran, Exit: -1}
				}
				return ran(a)
			})
			rec := &record{t: t}
			sum, err := fanout.Run(t.Context(), tt.p, names(2), fleet.Command{}, ex, rec)
			if r := rec.results[0]; err != nil || (sum.OK == 2) != tt.ok || (r.Attempts == 1) != tt.once || sum.Elapsed > 65*time.Second {
				t.Errorf("%s: %+v, %d attempts, %v", tt.name, sum, r.Attempts, err)
			}
		})
	}
}

// TestRetryEnds: a server that always turns away is given up.
func TestRetryEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := fake(func(context.Context, host.Host, fleet.Attempt) fleet.Outcome {
			return fleet.Outcome{Class: fleet.Throttled, Exit: -1, SlowDown: true}
		})
		rec := &record{t: t}
		sum, err := fanout.Run(t.Context(), fanout.Params{RetryFor: time.Minute}, names(3), fleet.Command{}, ex, rec)
		if err != nil || sum.Unreachable != 3 || sum.Elapsed > 2*time.Minute {
			t.Errorf("%+v, %v", sum, err)
		}
		if r := rec.results[0]; r.Attempts < 10 || r.Waited < time.Minute {
			t.Errorf("%d attempts, %v waited", r.Attempts, r.Waited)
		}
	})
}

// TestRetryClosedServer: a server that lets nobody in is given up sooner than one that is busy, and
// the retries are told of.
func TestRetryClosedServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := fake(func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
			server := "closed"
			if h.Name != "h1" {
				server = "busy"
			}
			if err := a.Admit(ctx, server); err != nil {
				t.Error(err)
			}
			if h.Name == "h2" {
				return ran(a)
			}
			return fleet.Outcome{Class: fleet.Throttled, Exit: -1, SlowDown: true}
		})
		rec := &record{t: t}
		if _, err := fanout.Run(t.Context(), fanout.Params{}, names(3), fleet.Command{}, ex, rec); err != nil || rec.most != 2 {
			t.Errorf("%v, at most %d were said to be tried again", err, rec.most)
		}
		for _, r := range rec.results {
			want := map[string]time.Duration{"h0": 2 * time.Minute, "h1": 30 * time.Second, "h2": 0}[r.Host.Name]
			if r.Elapsed < want || r.Elapsed > want+5*time.Second {
				t.Errorf("%s took %v, want %v", r.Host, r.Elapsed, want)
			}
		}
	})
}

// TestFewDescriptors: the descriptors of the machine cap what is open at once.
func TestFewDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, peak := 0, 0
		ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
			mu.Lock()
			running++
			peak = max(peak, running)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			running--
			mu.Unlock()
			return ran(a)
		})
		p := fanout.Params{Resources: &fanout.Resources{OpenFiles: 64 - 8}}
		sum, err := fanout.Run(t.Context(), p, names(200), fleet.Command{}, ex, &record{t: t})
		if err != nil || sum.OK != 200 || peak != 64-8-16 {
			t.Errorf("%+v, %v, %d at once", sum, err, peak)
		}
	})
}

// TestSilentHostsGiveWay: where descriptors are few, those who say nothing hold up nobody who
// answers, and are tried again for as long as they may take, once.
func TestSilentHostsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots, silent, timeout = 40, 400, 10 * time.Second
		start := time.Now()
		tries := map[string]int{}
		var mu sync.Mutex
		ex := fake(func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
			mu.Lock()
			tries[h.Name]++
			mu.Unlock()
			a.Reached(fleet.PhaseConnect)
			if h.Name == fmt.Sprintf("h%d", silent) {
				return fleet.Outcome{Class: fleet.Refused, Exit: -1, Err: "refused"}
			}
			select {
			case <-time.After(timeout):
				return fleet.Outcome{Class: fleet.TimedOut, Exit: -1, Err: "timed out"}
			case <-ctx.Done():
				class, text := fleet.Stopped(context.Cause(ctx))
				return fleet.Outcome{Class: class, Exit: -1, Err: text}
			}
		})
		told := time.Duration(0)
		late := 0
		sink := &sshtest.Told{OnDone: func(r fleet.Result) {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case r.Class == fleet.Refused:
				told = time.Since(start)
			case r.Class != fleet.TimedOut || r.Attempts != 1 || tries[r.Host.Name] > 2:
				t.Errorf("%s: %v, %d attempts, %d tries", r.Host, r.Class, r.Attempts, tries[r.Host.Name])
			default:
				late++
			}
		}}
		p := fanout.Params{Resources: &fanout.Resources{OpenFiles: slots + 16}}
		fanout.Run(t.Context(), p, names(silent+1), fleet.Command{}, ex, sink)
		if most := 2 * time.Second * silent / slots; told == 0 || told > most || late != silent {
			t.Errorf("the host that refuses was told after %v, want at most %v; %d timed out", told, most, late)
		}
	})
}

// TestNobodySpeaks: where no server says anything, as behind a jump host that is hung, one alone
// shows that the others are not to blame, and the run ends after three times what a login may take.
func TestNobodySpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const timeout = 3 * time.Second
		ex := fake(func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
			if err := a.Admit(ctx, h.Name); err != nil {
				t.Error(err)
			}
			a.Reached(fleet.PhaseKex)
			time.Sleep(timeout)
			return fleet.Outcome{Class: fleet.TimedOut, Exit: -1, Err: "timed out"}
		})
		sink := &sshtest.Told{}
		so, err := fanout.Run(t.Context(), fanout.Params{}, names(40), fleet.Command{}, ex, sink)
		if err != nil || so.Unreachable != 40 || so.Elapsed > 4*timeout {
			t.Errorf("%+v, %v", so, err)
		}
	})
}

// TestLostDialogue: where the connection was lost a command may have come to its end; a copy has
// not, and is repeated with the failed ones.
func TestLostDialogue(t *testing.T) {
	lost := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
		a.Reached(fleet.PhaseExec)
		return fleet.Outcome{Ran: fleet.RanYes, Class: fleet.Lost, Exit: -1, Err: "connection lost"}
	})
	talk := func(context.Context, host.Host, fleet.Channel) error { return nil }
	for want, cmd := range map[fleet.Ran]fleet.Command{fleet.RanUnknown: {}, fleet.RanYes: {Dialogue: talk}} {
		sink := &sshtest.Told{OnDone: func(r fleet.Result) {
			if r.Ran != want {
				t.Errorf("dialogue %v: ran: %v, want %v", cmd.Dialogue != nil, r.Ran, want)
			}
		}}
		if sum, err := fanout.Run(t.Context(), fanout.Params{}, names(1), cmd, lost, sink); err != nil || sum.Failed != 1 {
			t.Errorf("%+v, %v", sum, err)
		}
	}
}

// declining is a sink that lets only so many hosts start.
type declining struct {
	record
	most int
}

func (d *declining) Started(index int) error {
	if d.most--; d.most < 0 {
		return &fleet.Declined{Why: "enough"}
	}
	return d.record.Started(index)
}

// A sink may let no further host start: none is, by a login or over a connection that was there,
// and those that run go on.
func TestDeclinedHost(t *testing.T) {
	for _, kept := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			execute := func(ctx context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
				a.Reached(fleet.PhaseExec)
				if err := context.Cause(ctx); err != nil {
					return fleet.Outcome{Class: fleet.Cancelled, Exit: -1, Err: err.Error()}
				}
				time.Sleep(time.Minute)
				if ctx.Err() != nil {
					t.Error("a command was ended")
				}
				return ran(a)
			}
			var ex fleet.Executor = fake(execute)
			if kept {
				ex = unasked(execute)
			}
			sum, err := fanout.Run(t.Context(), fanout.Params{Fanout: 3}, names(9), fleet.Command{}, ex, &declining{record{t: t}, 2})
			if err != nil || sum.OK != 2 || sum.NotStarted != 7 || sum.Stopped != "enough" {
				t.Errorf("kept %v: %+v, %v", kept, sum, err)
			}
		})
	}
}

// unasked is a fake over connections that were there.
type unasked fake

func (unasked) FDs() int { return 1 }

func (f unasked) Execute(ctx context.Context, h host.Host, _ fleet.Command, a fleet.Attempt) fleet.Outcome {
	return f(ctx, h, a)
}
