package fanout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/fault"
	"sshpace/internal/fleet"
)

// Pace controls how a run goes from few hosts to many. The zero value starts all of them.
type Pace struct {
	Canary      int  // this many hosts first, and the others only if none of them fails
	ThenConfirm bool // the sink is asked after these, whether or not one failed
	// Batches are sizes of batches, each of which begins when the one before has ended; the last
	// size is repeated. None is one batch.
	Batches Shares
	Pause   time.Duration // between two batches
	// Begun is how many batches had begun before, in the same run by another process: they begin
	// without a pause or a question.
	Begun int
	// MaxFail is how many hosts may fail or be unreachable; with one more nothing new starts, and
	// running commands end by themselves. None is any number, except for a canary.
	MaxFail Shares
	// FailFast ends running commands, too, once more than MaxFail have failed; none is 0.
	FailFast bool
	Splay    time.Duration // each host of a batch starts at a random time within it
}

// Check finds contradictions.
func (p *Pace) Check() error {
	for _, size := range p.Batches {
		if size.Percent == 0 && size.Count == 0 {
			return fault.Usage("a batch has at least one host", "--batch %s", p.Batches.String())
		}
	}
	switch {
	case p.ThenConfirm && p.Canary == 0:
		return fault.Usage("give --canary N, too", "--then-confirm asks after a canary")
	case len(p.MaxFail) > 1:
		return fault.Usage("give one number or part", "--max-fail %s", p.MaxFail.String())
	case p.Pause > 0 && p.Canary == 0 && len(p.Batches) == 0:
		return fault.Usage("give --batch or --canary, too", "--pause is between batches")
	}
	return nil
}

// errStopped is why a host was not started after a run had stopped.
var errStopped = errors.New("stopped before it was started")

// Sizes cuts n hosts into batches.
func (p *Pace) Sizes(n int) []int {
	batches := p.Batches
	if len(batches) == 0 {
		batches = Shares{{Percent: 100}}
	}
	if p.Canary > 0 {
		batches = append(Shares{{Count: p.Canary}}, batches...)
	}
	var sizes []int
	for left := n; left > 0; {
		size := batches[min(len(sizes), len(batches)-1)]
		now := min(max(int(math.Ceil(size.of(n))), 1), left)
		sizes = append(sizes, now)
		left -= now
	}
	return sizes
}

// delays returns when the hosts of a batch start, after its beginning.
func (p *Pace) delays(hosts int) []time.Duration {
	delays := make([]time.Duration, hosts)
	for i := range delays {
		delays[i] = rand.N(max(p.Splay, 1))
	}
	slices.Sort(delays)
	return delays
}

// begin waits for the turn of a batch and calls the sink, which may decline.
func (r *run) begin(b fleet.Batch) {
	if b.Of < 2 || r.starting.Err() != nil {
		return
	}
	if b.Number > max(1, r.Pace.Begun) {
		r.sleep(r.Pace.Pause)
	}
	r.sinkMu.Lock()
	defer r.sinkMu.Unlock()
	if r.starting.Err() != nil || r.sinkErr != nil {
		return
	}
	b.Before, r.batch = r.summary, b
	err := r.sink.Batch(b)
	if declined, ok := errors.AsType[*fleet.Declined](err); ok {
		r.halt(declined.Why)
	} else if err != nil {
		r.fail(err)
	}
}

// judge stops the starting when too many hosts have failed. sinkMu is held.
func (r *run) judge() {
	failed := r.summary.Failed + r.summary.Unreachable
	switch p := r.Pace; {
	case failed == 0:
	case len(p.MaxFail) > 0:
		if most := p.MaxFail[0]; float64(failed) > most.of(r.total) {
			r.tooMany(fmt.Sprintf("%d of %d hosts had failed, more than --max-fail %s", failed, r.total, most))
		}
	case p.FailFast:
		r.tooMany(fmt.Sprintf("%d of %d hosts had failed, --fail-fast", failed, r.total))
	case p.Canary > 0 && !p.ThenConfirm && r.batch.Number <= 1:
		why := "the first host failed"
		if r.batch.Hosts > 1 {
			why = fmt.Sprintf("%d of the first %d hosts failed", failed, r.batch.Hosts)
		}
		r.halt(why)
	}
}

// tooMany stops the starting of hosts, and ends what runs if it may. sinkMu is held.
func (r *run) tooMany(why string) {
	r.halt(why)
	if r.Pace.FailFast {
		r.stop(fleet.ErrFailFast)
	}
}

// halt stops the starting of hosts, once. sinkMu is held.
func (r *run) halt(why string) {
	if r.summary.Stopped != "" {
		return
	}
	if r.batch.Of > 1 {
		why = fmt.Sprintf("batch %d of %d: %s", r.batch.Number, r.batch.Of, why)
	}
	r.summary.Stopped = why
	r.stopStarting(errStopped)
}

// ended returns why nothing new starts, if so.
func (r *run) ended() error {
	if r.starting.Err() == nil {
		return nil
	}
	return context.Cause(r.starting)
}
