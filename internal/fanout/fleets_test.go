package fanout

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
)

// kind of machine.
type kind struct {
	cores  float64
	login  time.Duration // CPU time until the key is shown; the rest takes as much again
	accept int           // as many unauthenticated connections; 0 = all
	begin  int           // with so many some are turned away, as sshd does with MaxStartups begin:30:accept; 0 = none before accept
}

// machine is a computer that serves hosts of a fleet: all logins share its cores evenly.
type machine struct {
	kind

	mu     sync.Mutex
	under  int
	served float64   // what each job has had
	at     time.Time // when that was so
	jobs   []*job    // the one that is done first at the front
	timer  *time.Timer
	chance *rand.Rand
	turned int // logins turned away
}

// full reports whether a login is turned away, with so many under way before it.
func (m *machine) full(before int) bool {
	rate := 30 + float64(70*(before-m.begin))/float64(max(m.accept-m.begin, 1))
	full := m.accept > 0 && (before >= m.accept || m.begin > 0 && before >= m.begin && m.chance.Float64()*100 < rate)
	if full {
		m.turned++
	}
	return full
}

type job struct {
	until float64 // of served
	done  chan struct{}
}

// work takes CPU time of the machine, unless ctx ends.
func (m *machine) work(ctx context.Context, cpu time.Duration) {
	j := &job{done: make(chan struct{})}
	m.mu.Lock()
	m.elapse()
	j.until = m.served + cpu.Seconds()
	m.jobs = append(m.jobs, j)
	slices.SortFunc(m.jobs, func(a, b *job) int { return cmp.Compare(a.until, b.until) })
	m.next()
	m.mu.Unlock()
	select {
	case <-j.done:
	case <-ctx.Done():
		m.mu.Lock()
		defer m.mu.Unlock()
		m.elapse()
		m.jobs = slices.DeleteFunc(m.jobs, func(other *job) bool { return other == j })
		m.next()
	}
}

func (m *machine) share() float64 { return min(m.cores/float64(len(m.jobs)), 1) }

// elapse gives the jobs what they have had meanwhile.
func (m *machine) elapse() {
	now := time.Now()
	if len(m.jobs) > 0 {
		m.served += now.Sub(m.at).Seconds() * m.share()
	}
	m.at = now
}

func (m *machine) next() {
	if m.timer != nil {
		m.timer.Stop()
	}
	if len(m.jobs) == 0 {
		return
	}
	wait := time.Duration((m.jobs[0].until-m.served)/m.share()*1e9) + 1
	m.timer = time.AfterFunc(wait, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.elapse()
		for len(m.jobs) > 0 && m.jobs[0].until <= m.served {
			close(m.jobs[0].done)
			m.jobs = m.jobs[1:]
		}
		m.next()
	})
}

// place is where a host of a fleet is.
type place struct {
	*machine // nil: nobody answers
	rtt      time.Duration
	hung     bool          // takes the connection and says nothing
	pam      time.Duration // what a login takes beside CPU time
}

// fleetOf is an fleet.Executor for hosts that are there by their index.
type fleetOf []place

func (fleetOf) FDs() int { return 1 }

// fixed is the same with so many at once, whatever becomes of them.
type fixed struct {
	fleetOf
	slots chan struct{}
}

func (f fixed) Execute(ctx context.Context, _ host.Host, _ fleet.Command, a fleet.Attempt) fleet.Outcome {
	f.slots <- struct{}{}
	defer func() { <-f.slots }()
	return f.at(ctx, a)
}

const simTimeout = 15 * time.Second

func (f fleetOf) Execute(ctx context.Context, h host.Host, _ fleet.Command, a fleet.Attempt) fleet.Outcome {
	if err := a.Admit(ctx, h.Name); err != nil {
		return fleet.Outcome{Class: fleet.Cancelled, Exit: -1}
	}
	return f.at(ctx, a)
}

// at logs in, now.
func (f fleetOf) at(ctx context.Context, a fleet.Attempt) fleet.Outcome {
	p := f[a.Index()]
	ctx, cancel := context.WithTimeout(ctx, simTimeout)
	defer cancel()
	a.Reached(fleet.PhaseConnect)
	if p.machine == nil {
		<-ctx.Done()
		return fleet.Outcome{Class: fleet.TimedOut, Exit: -1}
	}
	time.Sleep(p.rtt)
	a.Reached(fleet.PhaseKex)
	a.Distance(p.rtt)
	if p.hung {
		<-ctx.Done()
		return fleet.Outcome{Class: fleet.TimedOut, Exit: -1}
	}
	return p.login(ctx, a)
}

func (p place) login(ctx context.Context, a fleet.Attempt) fleet.Outcome {
	p.mu.Lock()
	full := p.full(p.under)
	p.under++
	p.mu.Unlock()
	defer func() { p.mu.Lock(); p.under--; p.mu.Unlock() }()
	if full {
		return fleet.Outcome{Class: fleet.Throttled, Exit: -1, SlowDown: true}
	}
	p.work(ctx, p.machine.login/4)
	time.Sleep(p.rtt)
	if ctx.Err() == nil {
		a.Alive()
	}
	p.work(ctx, p.machine.login*3/4)
	time.Sleep(p.rtt)
	if ctx.Err() != nil {
		return fleet.Outcome{Class: fleet.TimedOut, Exit: -1}
	}
	a.Reached(fleet.PhaseHostkey)
	a.Reached(fleet.PhaseAuth)
	early := a.Near()
	p.work(ctx, p.machine.login)
	time.Sleep(p.rtt + p.pam)
	switch {
	case ctx.Err() == nil:
	case early:
		return fleet.Outcome{Class: fleet.TimedOut, Ran: fleet.RanUnknown, Exit: -1}
	default:
		return fleet.Outcome{Class: fleet.TimedOut, Exit: -1}
	}
	a.Reached(fleet.PhaseExec)
	return fleet.Outcome{Ran: fleet.RanYes}
}

// shared are n hosts of one machine.
func shared(n int, p place, k kind) (all fleetOf) {
	p.machine = &machine{kind: k, chance: rand.New(rand.NewPCG(1, 2))}
	return slices.Repeat(fleetOf{p}, n)
}

// apart are n hosts with a machine each.
func apart(n int, p place, k kind) (all fleetOf) {
	for range n {
		p.machine = &machine{kind: k}
		all = append(all, p)
	}
	return all
}

// among spreads some hosts evenly among others.
func among(others, some fleetOf) (mixed fleetOf) {
	for i, p := range others {
		mixed = append(mixed, p)
		mixed = append(mixed, some[i*len(some)/len(others):(i+1)*len(some)/len(others)]...)
	}
	return mixed
}

const ms = time.Millisecond

// sim is a fleet that a run must get through without losing a host that lives.
type sim struct {
	fleetOf
	dead  int     // hosts that cannot be reached
	least float64 // the part of the speed that the best fixed number at once has; 0 = leastSpeed
}

const leastSpeed = 0.87

func fleets() map[string]sim {
	usual, slow := kind{cores: 1, login: 15 * ms}, kind{cores: 2, login: 12 * ms}
	far := place{rtt: 200 * ms}
	dead := func(n int) fleetOf { return make(fleetOf, n) }
	return map[string]sim{
		"one slow machine":         {fleetOf: shared(1400, place{}, slow)},
		"one very slow machine":    {fleetOf: shared(400, place{}, kind{cores: 1, login: 120 * ms}), least: 0.8},
		"one snail":                {fleetOf: shared(100, place{}, kind{cores: 1, login: 250 * ms}), least: 0.5},
		"half a login a second":    {fleetOf: shared(60, place{}, kind{cores: 1, login: time.Second}), least: 0.5},
		"one in four seconds":      {fleetOf: shared(30, place{}, kind{cores: 1, login: 2 * time.Second}), least: 0.5},
		"one in ten seconds":       {fleetOf: shared(30, place{}, kind{cores: 1, login: 5 * time.Second}), least: 0.5},
		"one slow machine far":     {fleetOf: shared(1400, far, slow)},
		"near":                     {fleetOf: apart(1400, place{}, usual)},
		"far":                      {fleetOf: apart(1400, far, usual)},
		"near, then far":           {fleetOf: append(apart(700, place{}, usual), apart(700, far, usual)...)},
		"near and far":             {fleetOf: among(apart(700, place{}, usual), apart(700, far, usual))},
		"quick, then slow":         {fleetOf: append(apart(700, place{}, kind{cores: 1, login: 2 * ms}), apart(700, place{}, kind{cores: 1, login: 400 * ms})...), least: 0.35},
		"some dead":                {fleetOf: among(apart(980, place{}, usual), dead(420)), dead: 420},
		"dead first":               {fleetOf: append(dead(100), apart(1300, place{}, usual)...), dead: 100, least: 0.25},
		"dead on a slow machine":   {fleetOf: among(shared(1300, place{}, slow), dead(100)), dead: 100},
		"some hung":                {fleetOf: among(apart(1300, place{}, usual), apart(100, place{hung: true}, usual)), dead: 100},
		"hung on a slow machine":   {fleetOf: among(shared(1300, place{}, slow), apart(100, place{hung: true}, usual)), dead: 100},
		"some sleep in PAM":        {fleetOf: among(apart(1370, place{}, usual), apart(30, place{pam: 5 * time.Second}, usual))},
		"one that drops":           {fleetOf: shared(1400, place{}, kind{cores: 8, login: 12 * ms, accept: 60})},
		"slow ones beside others":  {fleetOf: among(apart(1000, place{}, usual), shared(400, place{}, slow))},
		"one slow machine at last": {fleetOf: append(apart(1000, far, usual), shared(400, place{}, slow)...), least: 0.6},
	}
}

// TestFleets simulates them, in no time.
func TestFleets(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // for hosts to start in their order
	for name, f := range fleets() {
		t.Run(name, func(t *testing.T) {
			sum, took := simulate(t, f.fleetOf, 0)
			if sum.Failed > 0 || sum.Unreachable != f.dead {
				t.Errorf("%+v", sum)
			}
			best, at := time.Duration(0), 0
			for _, n := range []int{16, 256} {
				if sum, took := simulate(t, fleets()[name].fleetOf, n); sum.OK == len(f.fleetOf)-f.dead && (at == 0 || took < best) {
					best, at = took, n
				}
			}
			if speed := float64(best) / float64(took); at > 0 && speed < cmp.Or(f.least, leastSpeed) {
				t.Errorf("took %v, with %d at once %v", took, at, best)
			}
			if most := 3 * simTimeout; f.dead > 0 && sum.Elapsed > most {
				t.Errorf("the last dead host was given up after %v", sum.Elapsed)
			}
			t.Logf("%s: %v, best %v with %d; in all %v", name, took, best, at, sum.Elapsed)
		})
	}
}

// TestFewTurnedAway: a run learns how many logins at once sshd's MaxStartups 10:30:60 takes, and
// seldom tries more.
func TestFewTurnedAway(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f := shared(5600, place{}, kind{cores: 2, login: 12 * ms, begin: 10, accept: 60})
	sum, took := simulate(t, f, 0)
	if turned := f[0].turned; sum.OK != len(f) || turned > len(f)/100 {
		t.Errorf("%d logins were turned away for %d hosts: %+v", turned, len(f), sum)
	}
	t.Logf("%d turned away, %v", f[0].turned, took)
}

// simulate runs a command on a fleet, on as many hosts at once as a run sees fit, or on a fixed
// number. took is until the last of the hosts that live.
func simulate(t *testing.T, f fleetOf, at int) (sum fleet.Summary, took time.Duration) {
	synctest.Test(t, func(t *testing.T) {
		hosts := make([]host.Host, len(f))
		for i := range hosts {
			hosts[i].Name = fmt.Sprintf("h%d", i)
		}
		ex, err := fleet.Executor(f), error(nil)
		if at > 0 {
			ex = fixed{f, make(chan struct{}, at)}
		}
		last := &lastOK{start: time.Now()}
		if sum, err = Run(t.Context(), Params{Resources: &Resources{}}, hosts, fleet.Command{}, ex, last); err != nil {
			t.Error(err)
		}
		took = last.took
	})
	return sum, took
}

// lastOK is a Sink that knows when the last host was done.
type lastOK struct {
	fleet.Nothing
	start time.Time
	took  time.Duration
}

func (l *lastOK) Done(r fleet.Result, _ fleet.Summary) error {
	if r.Status() == fleet.OK {
		l.took = time.Since(l.start)
	}
	return nil
}
