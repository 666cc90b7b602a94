package survey

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"sshpace/internal/record"
	"sshpace/internal/ssh/transport"
	"sshpace/internal/sys/proc"
)

// ends lists the step that ends each phase, which began with the phase before it.
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
func (l *login) phases(own *ownLoad, now time.Time) {
	h, at := &l.Host, &l.seen.At
	h.Phases, h.WallNS, h.VainNS = nil, 0, l.seen.Vain
	add := func(p record.LoginPhase) {
		h.Phases, h.WallNS = append(h.Phases, p), h.WallNS+p.WallNS
	}
	if l.seen.Name > 0 {
		add(record.LoginPhase{Phase: record.PhaseStart, WallNS: l.seen.Name})
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
		p := record.LoginPhase{Phase: e.phase, WallNS: until.Sub(since), Unended: unended}
		p.LateNS, p.BusyNS = own.in(since, until)
		add(p)
		if since = until; unended {
			return
		}
	}
	if signed := at[transport.StepSign]; !signed.IsZero() {
		h.SigningNS = signed.Sub(at[transport.StepQuery])
	}
}

// ownLoad knows when this process was late, so that a wait that ended then may have ended earlier,
// and when the machine was busy, so that servers on it, or the network, had to wait for it.
type ownLoad struct {
	quit, done chan struct{}
	mu         sync.Mutex
	due        time.Time // of the next tick
	late, busy []span    // in order
	looked     time.Time // at load
	load       proc.Load
}

type span struct{ from, to time.Time }

// Ticks are often enough to see each time that matters, and cost a thousandth of a processor.
const (
	tick      = 5 * time.Millisecond
	noticing  = 2 * time.Millisecond
	lookEvery = 100 * time.Millisecond
	busyShare = 0.8 // of all processors
)

// watchOwnLoad begins to watch.
func watchOwnLoad() *ownLoad {
	w := &ownLoad{quit: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		for {
			w.look(time.Now())
			select {
			case <-w.quit:
				return
			case <-time.After(tick):
			}
		}
	}()
	return w
}

// look keeps how late a tick is and, from time to time, how busy the machine was.
func (w *ownLoad) look(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.due.IsZero() && now.Sub(w.due) > noticing {
		w.late = append(w.late, span{w.due, now})
	}
	w.due = now.Add(tick)
	if now.Sub(w.looked) < lookEvery {
		return
	}
	load, _ := proc.ReadLoad()
	used, most := load.Busy+load.Steal-w.load.Busy-w.load.Steal, now.Sub(w.looked)*time.Duration(runtime.NumCPU())
	if !w.looked.IsZero() && float64(used) >= busyShare*float64(most) {
		w.busy = append(w.busy, span{w.looked, now})
	}
	w.looked, w.load = now, load
}

func (w *ownLoad) stop() {
	close(w.quit)
	<-w.done
}

// in returns how long before the end of a wait the event that ended it may have come, and for how
// much of the wait the machine was busy.
func (w *ownLoad) in(from, to time.Time) (late, busy time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := append(slices.Clip(w.late), span{w.due, time.Now()})
	for i := len(all) - 1; i >= 0 && !all[i].to.Before(to.Add(-tick)); i-- {
		if all[i].from.Before(to) {
			late = min(to.Sub(all[i].from), to.Sub(from))
			break
		}
	}
	for i := len(w.busy) - 1; i >= 0 && w.busy[i].to.After(from); i-- {
		begin, end := max(0, w.busy[i].from.Sub(from)), min(w.busy[i].to.Sub(from), to.Sub(from))
		busy += max(0, end-begin)
	}
	return late, busy
}
