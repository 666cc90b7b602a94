package fanout

import (
	"context"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/admit"
)

// attempt is a fleet.Attempt of a run.
type attempt struct {
	run   *run
	index int
	host  host.Host
	name  string
	abort context.Context

	ticket     *admit.Ticket           // of the host
	endCommand context.CancelCauseFunc // ends ctx of this Execute
	begun      sync.Once               // the sink knows of it

	mu        sync.Mutex
	phase     fleet.Phase
	since     time.Time // when phase was entered
	spent     fleet.Spent
	waited    time.Duration
	roundTrip time.Duration // to the server; 0 = unknown
	timer     *time.Timer   // the command timeout
	outBytes  int64
	errBytes  int64
	through   func(fleet.Stream, []byte) []byte // filter of output; nil: none
	cut       bool                              // there was more output than MaxOutput
	firstTry  firstTry
}

func (a *attempt) Index() int             { return a.index }
func (a *attempt) Host() host.Host        { return a.host }
func (a *attempt) Abort() context.Context { return a.abort }

func (a *attempt) Admit(ctx context.Context, addr string) error {
	if a.Phase() < fleet.PhaseExec { // otherwise the command has run, and this is another login
		defer context.AfterFunc(a.run.starting, func() { a.endCommand(context.Cause(a.run.starting)) })()
	}
	start := time.Now()
	err := a.ticket.Admit(ctx, addr)
	if err == nil {
		a.started()
		err = a.permitted(ctx)
	}
	wait := time.Since(start)

	a.mu.Lock()
	a.waited += wait
	a.since = a.since.Add(wait) // waiting belongs to no phase
	a.mu.Unlock()

	if err == nil {
		a.beginFirstTry()
	}
	return err
}

// permitted waits until the host may start. What is not permitted ends the attempt.
func (a *attempt) permitted(ctx context.Context) error {
	if a.run.Permit == nil || ctx.Err() != nil { // what has started may have ended the run
		return context.Cause(ctx)
	}
	err := a.run.Permit(ctx, a.index)
	if err != nil {
		a.endCommand(err)
	}
	return err
}

func (a *attempt) Reached(p fleet.Phase) {
	if p >= fleet.PhaseExec {
		a.started()
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if p <= a.phase {
		if p >= fleet.PhaseExec { // of another login
			a.ticket.LoggedIn()
		}
		return
	}
	a.spent[a.phase] += now.Sub(a.since)
	a.phase, a.since = p, now
	a.run.phases[a.index].Store(uint32(p))
	switch {
	case p >= fleet.PhaseExec:
		a.keepPlace()
		a.ticket.LoggedIn()
	case p == fleet.PhaseConnect:
		a.ticket.Reached(admit.Connecting)
	case p == fleet.PhaseKex:
		a.ticket.Reached(admit.Connected)
	case p == fleet.PhaseHostkey:
		a.ticket.KeyShown(a.spent[fleet.PhaseKex], a.roundTrip)
	}
	if limit := a.run.CommandTimeout; p == fleet.PhaseExec && limit > 0 {
		a.timer = time.AfterFunc(limit, func() { a.endCommand(fleet.ErrCommandTimeout) })
	}
}

// started reports the beginning to the sink, before anything runs: later, output may hold the sink
// up for any time, and a command must end in time all the same.
func (a *attempt) started() {
	a.begun.Do(func() {
		if !a.run.started(a.index) {
			a.endCommand(errStopped)
		}
	})
}

func (a *attempt) Phase() fleet.Phase {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.phase
}

func (a *attempt) Talked() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.outBytes+a.errBytes > 0
}

func (a *attempt) Output(s fleet.Stream, data []byte) error { return a.OutputAt(time.Now(), s, data) }

func (a *attempt) OutputAt(at time.Time, s fleet.Stream, data []byte) error {
	a.mu.Lock()
	through := a.through
	a.mu.Unlock()
	if through != nil {
		data = through(s, data)
	}
	data, more := a.take(s, data)
	if len(data) > 0 {
		if err := a.run.output(fleet.Event{Index: a.index, Host: a.name, Stream: s, Data: data, Time: at}); err != nil {
			return err
		}
	}
	if more {
		a.endCommand(fleet.ErrOutputLimit)
		return fleet.ErrOutputLimit
	}
	return nil
}

func (a *attempt) Through(f func(fleet.Stream, []byte) []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.through = f
}

// take counts a piece of output and returns as much of it as fits into MaxOutput; more reports
// whether there is more than that.
func (a *attempt) take(s fleet.Stream, data []byte) (taken []byte, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if limit := a.run.MaxOutput; limit > 0 {
		if room := limit - a.outBytes - a.errBytes; int64(len(data)) > room {
			data, a.cut = data[:room], true
		}
	}
	if s == fleet.Stdout {
		a.outBytes += int64(len(data))
	} else {
		a.errBytes += int64(len(data))
	}
	return data, a.cut
}

// finish ends the attempt and completes the outcome.
func (a *attempt) finish(o *fleet.Outcome) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spent[a.phase] += time.Since(a.since)
	a.spent[fleet.PhaseQueued], a.spent[fleet.PhaseExit] = 0, 0
	a.keepPlace()
	if a.timer != nil {
		a.timer.Stop()
	}
	a.ticket.End(a.ending(o))
	if o.Class == fleet.Lost && o.Ran == fleet.RanYes && a.run.command.Dialogue == nil { // it began, and nobody knows whether it finished
		o.Ran = fleet.RanUnknown
	}
	if a.cut && o.Class == fleet.NoFailure { // it ended before it was ended
		o.Class, o.Err = fleet.Stopped(fleet.ErrOutputLimit)
	}
	if o.Class == fleet.OutputLimit {
		o.Hint = "give --max-output a larger SIZE, or 0 for any amount"
	}
}

// ending describes the outcome for the ticket.
func (a *attempt) ending(o *fleet.Outcome) (e admit.Ending) {
	late := (o.Class == fleet.TimedOut || o.Class == fleet.Lost) && o.Ran == fleet.RanNo && a.phase >= fleet.PhaseKex
	switch {
	case o.SlowDown:
		e = admit.TurnedAway
	case late:
		e = admit.Overdue
	case o.Class == fleet.Refused:
		e = admit.Refused
	}
	if o.Closed || o.Class == fleet.Refused || o.Class == fleet.Unroutable || o.Class == fleet.TimedOut && a.phase <= fleet.PhaseConnect {
		e |= admit.Down
	}
	return e
}

func (a *attempt) Distance(roundTrip time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.roundTrip = roundTrip
}

func (a *attempt) Alive() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.keepPlace()
	a.ticket.Reached(admit.Speaking)
}

func (a *attempt) Near() bool { return a.ticket.Near() }
