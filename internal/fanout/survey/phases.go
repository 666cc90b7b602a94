package survey

import (
	"context"
	"runtime"
	"sync"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/record"
	"sshpace/internal/ssh/transport"
	"sshpace/internal/sys/proc"
)

// ends lists the step that ends each phase. A phase begins where the one before it ends.
var ends = []struct {
	phase record.Phase
	step  transport.Step
}{
	{record.PhaseTCP, transport.StepConnect},
	{record.PhaseVersion, transport.StepVersion},
	{record.PhaseKexInit, transport.StepKexInit},
	{record.PhaseKex, transport.StepKexReply},
	{record.PhaseHostKey, transport.StepHostKey},
	{record.PhaseNewKeys, transport.StepNewKeys},
	{record.PhaseService, transport.StepService},
	{record.PhaseAuthNone, transport.StepMethods},
	{record.PhaseQuery, transport.StepQuery},
	{record.PhaseSign, transport.StepAuth},
	{record.PhaseChannel, transport.StepOpen},
	{record.PhaseExec, transport.StepExec},
	{record.PhaseCommand, transport.StepExit},
}

// phases fills in the phases of a login. The last one has not ended if there is a time now.
func (l *login) phases(own *load, now time.Time) {
	h, at := &l.Host, &l.seen.At
	h.Phases, h.WallNS, h.VainNS = nil, 0, l.seen.Vain
	add := func(p record.LoginPhase) {
		h.Phases, h.WallNS = append(h.Phases, p), h.WallNS+p.WallNS
	}
	if l.seen.Name > 0 {
		add(record.LoginPhase{Phase: record.PhaseStart, WallNS: l.seen.Name})
	}
	if signed := at[transport.StepSign]; !signed.IsZero() {
		h.SigningNS = signed.Sub(at[transport.StepQuery])
	}
	since := at[transport.StepDial]
	if since.IsZero() {
		return
	}
	for _, e := range ends {
		until := at[e.step]
		if e.phase == record.PhaseAuthNone && !until.IsZero() {
			until = until.Add(-h.VainNS)
		}
		unended := until.IsZero()
		if unended && (now.IsZero() || at[transport.StepExit].After(since)) {
			continue
		}
		if unended {
			until = now
		}
		add(record.LoginPhase{Phase: e.phase, WallNS: until.Sub(since), BusyNS: own.in(since, until), Unended: unended})
		if since = until; unended {
			return
		}
	}
}

// load records when this machine was busy: nearly all of its processors were in use, or the one of
// this process. A wait may be due to this machine then, and not to the host.
type load struct {
	mu     sync.Mutex
	busy   []span // in order
	before usage
}

type span struct{ from, to time.Time }

// usage is the CPU time used up to a moment.
type usage struct {
	at       time.Time
	all, own time.Duration
}

const (
	lookEvery = 100 * time.Millisecond
	nearlyAll = 0.8
)

// watch samples the load until ctx ends.
func (w *load) watch(ctx context.Context) {
	for more := true; more; more = sched.For(ctx, lookEvery) {
		w.look()
	}
}

func (w *load) look() {
	machine, _ := proc.ReadLoad()
	now := usage{time.Now(), machine.Busy + machine.Steal, proc.Self()}
	took := nearlyAll * float64(now.at.Sub(w.before.at))
	w.mu.Lock()
	defer w.mu.Unlock()
	if float64(now.all-w.before.all) >= took*float64(runtime.NumCPU()) || float64(now.own-w.before.own) >= took {
		w.busy = append(w.busy, span{w.before.at, now.at})
	}
	w.before = now
}

// in returns how long the machine was busy within a time. The state at the last look is taken to
// continue.
func (w *load) in(from, to time.Time) (busy time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.busy) - 1; i >= 0; i-- {
		s := w.busy[i]
		if s.to.Equal(w.before.at) && to.After(s.to) {
			s.to = to
		}
		if !s.to.After(from) {
			break
		}
		busy += max(0, min(s.to.Sub(from), to.Sub(from))-max(0, s.from.Sub(from)))
	}
	return busy
}
