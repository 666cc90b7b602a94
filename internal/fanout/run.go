// Package fanout runs one command on many hosts at once: it decides when each host may start, slows
// down where servers ask for it, retries commands that provably have not run, bounds memory and
// open files, and reports all events to a fleet.Sink. The fleet.Executor connects; package admit
// decides who may log in now.
package fanout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
	"sshpace/internal/ssh/admit"
)

// DefaultMaxOutput is in bytes: more than almost any command prints and fits on almost any disk.
const DefaultMaxOutput = 256 << 20

var errSinkFailed = errors.New("output failed")

// Params of a run. The zero value is the documented default.
type Params struct {
	// ID names the run in Start; "" where it has no name.
	ID string
	// Fanout caps the hosts that are connected or connecting at once; 0 derives it from file
	// descriptors and memory.
	Fanout int
	// CommandTimeout bounds the command on one host, from its start; 0 is none.
	CommandTimeout time.Duration
	// MaxOutput bounds the output of one host, both streams together, in bytes; a command that
	// sends more is ended. 0 means no bound.
	MaxOutput int64
	// Drain, when done, ends the run politely: nothing new starts, and running commands are ended
	// as by their timeout. nil is never.
	Drain context.Context
	// Enough, when done, starts nothing more, and what has started goes on. nil is never.
	Enough context.Context
	// Permit is called when a host is admitted, and returns when its connection may be opened, or
	// its command may leave on one that is open already; an error ends the attempt. nil permits
	// all.
	Permit func(ctx context.Context, index int) error
	// Room is shared with other runs. nil is a room for this one alone, by Fanout and Resources.
	Room *Room
	// Pace is how many hosts start when.
	Pace Pace
	// RetryFor bounds how long a host waits for another try while servers ask to slow down; 0 is
	// two minutes, or 30 seconds where the server accepted nobody, and a negative value is never.
	RetryFor time.Duration
	// RetryDown retries hosts that are down, whose port refuses or that end every login, for
	// RetryFor in all.
	RetryDown bool
	// ReservedFDs is the need of other parts of the process, such as per-host files.
	ReservedFDs int
	// Resources are the limits of this machine; nil asks the operating system.
	Resources *Resources
}

type run struct {
	Params
	executor fleet.Executor
	command  fleet.Command
	soft     context.Context // ends politely; child of hard
	stop     context.CancelCauseFunc
	starting context.Context // ends when nothing new may start; child of soft
	total    int
	phases   []atomic.Uint32 // of the hosts now

	stopStarting context.CancelCauseFunc

	sinkMu  sync.Mutex
	sink    fleet.Sink
	sinkErr error
	summary fleet.Summary
	touched map[int]bool   // hosts that the sink knows as started and not as ended
	lost    map[int]string // why output of hosts that run was lost, by index
	waiting int            // hosts that wait to be tried again
	batch   fleet.Batch
}

// Run runs cmd on every host and returns when all have ended. When ctx ends, everything is dropped
// at once; Params.Drain ends it politely. The error is the sink's first one, or ctx's cause; the
// Summary is right in any case.
func Run(ctx context.Context, p Params, hosts []host.Host, cmd fleet.Command, ex fleet.Executor, sink fleet.Sink) (fleet.Summary, error) {
	start := time.Now()
	if p.Room == nil {
		p.Room = newRoom(p.Resources, p.Fanout, len(hosts), ex.FDs(), p.ReservedFDs)
	}
	soft, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if p.Drain != nil {
		defer context.AfterFunc(p.Drain, func() { stop(fleet.ErrInterrupted) })()
	}
	starting, stopStarting := context.WithCancelCause(soft)
	defer stopStarting(nil)
	if p.Enough != nil {
		defer context.AfterFunc(p.Enough, func() { stopStarting(context.Cause(p.Enough)) })()
	}
	r := &run{
		starting: starting, stopStarting: stopStarting, total: len(hosts), phases: make([]atomic.Uint32, len(hosts)),
		Params: p, executor: ex, command: cmd, sink: sink, soft: soft, stop: stop,
		lost: map[int]string{}, touched: map[int]bool{},
	}
	err := sink.Begin(fleet.Start{ID: p.ID, Time: start, Command: cmd.Text, Hosts: hosts, Phase: r.phase})
	if err == nil {
		r.all(ctx, hosts)
		err = cmp.Or(r.sinkErr, context.Cause(ctx))
		if cause := context.Cause(soft); errors.Is(cause, fleet.ErrInterrupted) {
			r.summary.Stopped = cmp.Or(r.summary.Stopped, cause.Error())
		}
	}
	r.summary.Elapsed = time.Since(start)
	end := sink.End(r.summary)
	return r.summary, cmp.Or(err, end) // which may be the same one
}

// all starts the hosts in order, batch by batch, as slots become free.
func (r *run) all(hard context.Context, hosts []host.Host) {
	sizes := r.Pace.Sizes(len(hosts))
	next := 0
	for i, size := range sizes {
		b := fleet.Batch{Number: i + 1, Of: len(sizes), Hosts: size, Begun: i < r.Pace.Begun}
		if b.Number < b.Of {
			b.Pause = r.Pace.Pause
		}
		r.begin(b)
		var running sync.WaitGroup
		tried := make(chan struct{}) // all of the batch have had a first try, or have one
		began, delays := time.Now(), r.Pace.delays(size)
		for i := range size {
			res := fleet.Result{Index: next, Host: hosts[next], Outcome: fleet.Outcome{Exit: -1, Class: fleet.Cancelled, Err: "not started"}}
			if b.Of > 1 {
				res.Batch = b.Number
			}
			next++
			if r.Pace.Splay > 0 {
				r.sleep(time.Until(began.Add(delays[i])))
			}
			if !r.takeSlot() {
				r.done(res)
				continue
			}
			running.Go(func() { r.one(hard, res, tried) })
		}
		close(tried)
		running.Wait()
	}
}

// phase returns how far a host is now.
func (r *run) phase(index int) fleet.Phase { return fleet.Phase(r.phases[index].Load()) }

func (r *run) takeSlot() bool { return r.Room.enter(r.starting) }

// one runs one host, with retries, and reports its end. It enters with a slot.
func (r *run) one(hard context.Context, res fleet.Result, tried <-chan struct{}) {
	res.Start = time.Now()
	ticket, silence := r.Room.gate.Retrying(r.RetryFor, r.RetryDown), time.Duration(0)
	if r.limitedByMachine() {
		silence = firstTryLimit
	}
	for more := true; more; {
		outcome, a := r.attempt(hard, &res, ticket, silence)
		r.Room.leave()
		if a.yielded(&outcome) {
			res.Class, silence = fleet.Throttled, 0
			res.Attempts--
			more = r.secondTry(&res, tried)
		} else {
			more = outcome.Ran == fleet.RanNo && outcome.Measured == nil && r.ended() == nil && r.again(&res, ticket)
		}
	}
	if why := r.ended(); res.Class == fleet.Throttled && why != nil { // it would have been tried again
		res.Class, res.Err, res.Hint, res.Cause = fleet.Cancelled, why.Error(), "", nil
	}
	res.Elapsed = time.Since(res.Start)
	if m := res.Measured; m != nil {
		res.Start, res.Elapsed, res.Waited, res.Attempts = m.Start, m.Elapsed, m.Waited, m.Attempts
		res.Phase, res.Spent, res.Incomplete, res.Measured = m.Phase, m.Spent, m.Incomplete, nil
	}
	r.done(res)
}

// secondTry waits until all others have had a first try, and takes a slot.
func (r *run) secondTry(res *fleet.Result, tried <-chan struct{}) bool {
	start := time.Now()
	defer func() { res.Waited += time.Since(start) }()
	select {
	case <-tried:
	case <-r.starting.Done():
	}
	return r.takeSlot()
}

// again waits until the host may be tried again, if it may, and takes a slot.
func (r *run) again(res *fleet.Result, ticket *admit.Ticket) bool {
	after, again := ticket.Again()
	if !again {
		return false
	}
	r.retrying(+1)
	defer r.retrying(-1)
	res.Waited += r.sleep(after)
	return r.takeSlot()
}

// attempt runs the Executor once, fills in the result and returns the outcome, with the attempt;
// silence, if not 0, is how long the server may be silent.
func (r *run) attempt(hard context.Context, res *fleet.Result, ticket *admit.Ticket, silence time.Duration) (fleet.Outcome, *attempt) {
	ctx, cancel := context.WithCancelCause(r.soft)
	defer cancel(nil)
	a := &attempt{run: r, index: res.Index, host: res.Host, name: res.Host.String(), abort: hard, ticket: ticket, endCommand: cancel,
		since: time.Now(), firstTry: firstTry{limit: silence}}
	o := r.executor.Execute(ctx, res.Host, r.command, a)
	a.finish(&o)
	r.phases[res.Index].Store(uint32(fleet.PhaseQueued))

	res.Attempts++
	res.Outcome = o
	res.Phase, res.Spent = a.phase, a.spent
	res.Waited += a.waited
	res.OutBytes += a.outBytes
	res.ErrBytes += a.errBytes
	if a.cut {
		res.Incomplete = fmt.Sprintf("cut off after %d bytes", r.MaxOutput)
	}
	return o, a
}

// retrying counts hosts that wait to be tried again.
func (r *run) retrying(change int) {
	r.sinkMu.Lock()
	defer r.sinkMu.Unlock()
	r.waiting += change
	r.sink.Waiting(r.waiting)
}

// started reports to the sink that the connection to a host begins, once, and whether it may.
func (r *run) started(index int) bool {
	r.sinkMu.Lock()
	defer r.sinkMu.Unlock()
	if r.touched[index] || r.sinkErr != nil {
		return true
	}
	r.touched[index] = true
	err := r.sink.Started(index)
	if declined, ok := errors.AsType[*fleet.Declined](err); ok {
		r.halt(declined.Why)
		return false
	} else if err != nil && !r.isLoss(index, err) {
		r.fail(err)
	}
	return true
}

func (r *run) sleep(d time.Duration) time.Duration {
	start := time.Now()
	sched.For(r.starting, d)
	return time.Since(start)
}

// output passes an event to the sink.
func (r *run) output(e fleet.Event) error {
	r.sinkMu.Lock()
	defer r.sinkMu.Unlock()
	if r.sinkErr != nil {
		return r.sinkErr
	}
	if err := r.sink.Output(e); err != nil && !r.isLoss(e.Index, err) {
		r.fail(err)
	}
	return r.sinkErr
}

// isLoss reports whether err only means that output of the host was lost, and records the loss.
// sinkMu is held.
func (r *run) isLoss(index int, err error) bool {
	loss, ok := errors.AsType[*fleet.LostOutput](err)
	if !ok {
		return false
	}
	if r.lost[index] == "" {
		r.lost[index] = loss.Error()
	}
	if r.summary.Lost == nil {
		r.summary.Lost = loss.Err
	}
	return true
}

// done passes a result to the sink, even after an error: a record of the run must know every host.
func (r *run) done(res fleet.Result) {
	r.sinkMu.Lock()
	defer r.sinkMu.Unlock()
	res.Incomplete = cmp.Or(res.Incomplete, r.lost[res.Index])
	r.summary.Add(&res)
	if res.Class == fleet.Lost {
		r.Room.gate.ConnectionLost()
	}
	r.judge()
	if err := r.sink.Done(res, r.summary); err != nil && !r.isLoss(res.Index, err) {
		r.fail(err)
	}
	if res.Incomplete == "" && r.lost[res.Index] != "" {
		r.summary.Incomplete++
	}
	delete(r.lost, res.Index)
	delete(r.touched, res.Index)
}

// fail remembers the sink's first error and ends the run. sinkMu is held.
func (r *run) fail(err error) {
	if r.sinkErr == nil {
		r.sinkErr = err
		r.stop(fmt.Errorf("%w: %w", errSinkFailed, err)) // on one line
	}
}
