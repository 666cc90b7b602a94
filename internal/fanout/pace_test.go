package fanout_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
)

// waves is a sink that knows which batches began, and declines one of them.
type waves struct {
	record
	hosts   []int
	decline int
}

func (w *waves) Batch(b fleet.Batch) error {
	defer w.enter()()
	if b.Before.Total() != len(w.results) {
		w.t.Errorf("batch %d begins while hosts of the one before run", b.Number)
	}
	w.hosts = append(w.hosts, b.Hosts)
	if b.Number == w.decline {
		return &fleet.Declined{Why: "no"}
	}
	return nil
}

func TestPace(t *testing.T) {
	share := func(text string) fanout.Share {
		s, err := fanout.ParseShare(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	one, none, tenth := share("1"), share("0"), share("10%")
	for name, tt := range map[string]struct {
		pace    fanout.Pace
		decline int
		fails   func(i int) bool
		batches []int
		want    fleet.Summary
		most    int // hosts at once
		took    time.Duration
	}{
		"all":      {want: fleet.Summary{OK: 30}, most: 30, took: time.Minute},
		"ramp":     {pace: fanout.Pace{Batches: fanout.Shares{one, share("10%"), share("50%")}, Pause: time.Hour}, batches: []int{1, 3, 15, 11}, want: fleet.Summary{OK: 30}, most: 15, took: 3*time.Hour + 4*time.Minute},
		"parts":    {pace: fanout.Pace{Batches: fanout.Shares{share("33%")}}, batches: []int{10, 10, 10}, want: fleet.Summary{OK: 30}, most: 10, took: 3 * time.Minute},
		"canary":   {pace: fanout.Pace{Canary: 2}, fails: func(i int) bool { return i == 1 }, batches: []int{2}, want: fleet.Summary{OK: 1, Failed: 1, NotStarted: 28, Stopped: "batch 1 of 2: 1 of the first 2 hosts failed"}, most: 2, took: time.Minute},
		"later":    {pace: fanout.Pace{Canary: 2}, fails: func(i int) bool { return i > 20 }, batches: []int{2, 28}, want: fleet.Summary{OK: 21, Failed: 9}, most: 28, took: 2 * time.Minute},
		"declined": {pace: fanout.Pace{Batches: fanout.Shares{one, share("100%")}}, decline: 2, batches: []int{1, 29}, want: fleet.Summary{OK: 1, NotStarted: 29, Stopped: "batch 2 of 2: no"}, most: 1, took: time.Minute},
		"max":      {pace: fanout.Pace{Batches: fanout.Shares{share("5")}, MaxFail: fanout.Shares{tenth}}, fails: func(i int) bool { return i%2 == 0 }, batches: []int{5, 5}, want: fleet.Summary{OK: 5, Failed: 5, NotStarted: 20, Stopped: "batch 2 of 6: 4 of 30 hosts had failed, more than --max-fail 10%"}, most: 5, took: 2 * time.Minute},
		"none":     {pace: fanout.Pace{MaxFail: fanout.Shares{none}}, fails: func(i int) bool { return i == 4 }, want: fleet.Summary{OK: 29, Failed: 1, Stopped: "1 of 30 hosts had failed, more than --max-fail 0"}, most: 30, took: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				running, most, index := 0, 0, 0
				ex := fake(func(ctx context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
					mu.Lock()
					i := index
					index++
					running++
					most = max(most, running)
					mu.Unlock()
					time.Sleep(time.Minute)
					if ctx.Err() != nil {
						t.Error("a running host was ended")
					}
					mu.Lock()
					running--
					mu.Unlock()
					o := ran(a)
					if tt.fails != nil && tt.fails(i) {
						o.Exit = 1
					}
					return o
				})
				sink := &waves{record: record{t: t}, decline: tt.decline}
				sum, err := fanout.Run(t.Context(), fanout.Params{Pace: tt.pace}, names(30), fleet.Command{}, ex, sink)
				if sum.Elapsed < tt.took || sum.Elapsed > tt.took+time.Second {
					t.Errorf("took %v, want %v", sum.Elapsed, tt.took)
				}
				tt.want.Elapsed, tt.want.MaxExit = sum.Elapsed, sum.MaxExit
				if err != nil || sum != tt.want || most != tt.most {
					t.Errorf("%v, %d at once\n%+v, want\n%+v", err, most, sum, tt.want)
				}
				if len(sink.hosts) != len(tt.batches) {
					t.Fatalf("batches %v, want %v", sink.hosts, tt.batches)
				}
				for i, n := range tt.batches {
					if sink.hosts[i] != n {
						t.Errorf("batches %v, want %v", sink.hosts, tt.batches)
					}
				}
			})
		})
	}
}

// TestStopsThoseThatWait: a host that waits for its login is not started any more.
func TestStopsThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome {
			time.Sleep(time.Second) // the login; the gate lets 48 begin
			o := ran(a)
			o.Exit = 1
			return o
		})
		most := fanout.Share{Count: 3}
		sum, err := fanout.Run(t.Context(), fanout.Params{Pace: fanout.Pace{MaxFail: fanout.Shares{most}}}, onServer(500), fleet.Command{}, ex, &record{t: t})
		if err != nil || sum.Failed < 4 || sum.Failed > 100 || sum.NotStarted != 500-sum.Failed {
			t.Errorf("%v %+v", err, sum)
		}
	})
}

// onServer are hosts that share one name, and so one gate.
func onServer(n int) []host.Host {
	hosts := make([]host.Host, n)
	for i := range hosts {
		hosts[i].Name = "server"
	}
	return hosts
}

// TestInterruptedBetweenBatches: Ctrl-C in a pause ends the run at once, and no host of the next
// batch is started.
func TestInterruptedBetweenBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		drain, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, interrupt)
		ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome { return ran(a) })
		p := fanout.Params{Drain: drain, Pace: fanout.Pace{Batches: fanout.Shares{{Count: 3}}, Pause: time.Hour}}
		sum, err := fanout.Run(t.Context(), p, names(9), fleet.Command{}, ex, &record{t: t})
		if err != nil || sum.OK != 3 || sum.NotStarted != 6 || sum.Elapsed != time.Minute {
			t.Errorf("%+v, %v", sum, err)
		}
	})
}

// TestFailFast: one host too many that fails ends the running commands, too; nothing else starts.
func TestFailFast(t *testing.T) {
	for most, failing := range map[int]int{-1: 1, 2: 3} { // -1: no --max-fail
		synctest.Test(t, func(t *testing.T) {
			ex := fake(func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
				a.Reached(fleet.PhaseExec)
				o := fleet.Outcome{Ran: fleet.RanYes, Exit: 1}
				if h.Name < "h"+string(rune('0'+failing)) {
					time.Sleep(time.Minute)
					return o
				}
				select {
				case <-ctx.Done():
				case <-time.After(time.Hour):
				}
				o.Ended(ctx, false, "")
				return o
			})
			p := fanout.Params{Fanout: 5, Pace: fanout.Pace{FailFast: true}}
			if most >= 0 {
				p.Pace.MaxFail = fanout.Shares{{Count: most}}
			}
			sink := &record{t: t}
			sum, err := fanout.Run(t.Context(), p, names(9), fleet.Command{}, ex, sink)
			if err != nil || sum.Failed+sum.NotStarted != 9 || sum.NotStarted == 0 || sum.Elapsed > 2*time.Minute || sum.Stopped == "" {
				t.Errorf("%v, %+v", err, sum)
			}
			if r := sink.results[failing]; r.Class != fleet.Cancelled || r.Status() != fleet.Failed || r.Err != "ended because other hosts had failed; it may still run there" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestSplay: hosts start at random times within it, in their order, and batches one after the
// other; Ctrl-C does not wait for them.
func TestSplay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ex := fake(func(_ context.Context, _ host.Host, a fleet.Attempt) fleet.Outcome { return ran(a) })
		sink := &record{t: t}
		pace := fanout.Pace{Splay: time.Hour, Batches: fanout.Shares{{Count: 20}, {Count: 10}}}
		if sum, err := fanout.Run(t.Context(), fanout.Params{Pace: pace}, names(30), fleet.Command{}, ex, sink); err != nil || sum.OK != 30 {
			t.Fatal(err, sum)
		}
		at := func(i int) time.Duration { return sink.results[i].Start.Sub(began) }
		for i := range 29 {
			if at(i) > at(i+1) {
				t.Errorf("host %d starts after the next one", i)
			}
		}
		if at(19) > time.Hour || at(29)-at(19) > time.Hour || at(19)-at(0) < time.Minute || at(29)-at(20) < time.Minute {
			t.Errorf("from %v to %v, and from %v to %v", at(0), at(19), at(20), at(29))
		}
		drain, interrupt := context.WithCancel(t.Context())
		interrupt()
		if sum, _ := fanout.Run(t.Context(), fanout.Params{Pace: pace, Drain: drain}, names(30), fleet.Command{}, ex, &record{t: t}); sum.NotStarted != 30 || sum.Elapsed > time.Second {
			t.Errorf("interrupted: %+v", sum)
		}
	})
}

// TestAnotherLogin: a host whose command has run may log in again, also when nothing new starts any
// more, and holds no place of a login afterwards.
func TestAnotherLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const hosts = 60
		var all sync.WaitGroup
		all.Add(hosts)
		ex := fake(func(ctx context.Context, h host.Host, a fleet.Attempt) fleet.Outcome {
			a.Reached(fleet.PhaseExec)
			if a.Index() == 0 {
				all.Done()
				time.Sleep(time.Second) // all have begun
				return fleet.Outcome{Ran: fleet.RanYes, Exit: 1}
			}
			time.Sleep(time.Minute) // nothing starts any more
			err := a.Admit(ctx, h.Name)
			a.Reached(fleet.PhaseExec)
			all.Done()
			all.Wait()
			if err != nil || ctx.Err() != nil {
				t.Error(err, context.Cause(ctx))
			}
			return fleet.Outcome{Ran: fleet.RanYes}
		})
		sum, err := fanout.Run(t.Context(), fanout.Params{Pace: fanout.Pace{MaxFail: fanout.Shares{{}}}}, onServer(hosts), fleet.Command{}, ex, &record{t: t})
		if err != nil || sum.OK != hosts-1 || sum.Failed != 1 {
			t.Errorf("%v, %+v", err, sum)
		}
	})
}
