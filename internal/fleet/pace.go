package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"
)

// Pace says how a run goes from few hosts to many. The zero value starts all of
// them.
type Pace struct {
	// Batches are sizes of batches, each of which begins when the one before has
	// ended; the last size is that of all that follow, too. None is one batch.
	Batches []Share
	Pause   time.Duration // between two batches
	// FirstMustPass stops the run if a host of the first batch fails.
	FirstMustPass bool
	// MaxFail is how many hosts may fail or be unreachable; with one more nothing
	// new starts, and what runs ends by itself. nil is any number.
	MaxFail *Share
}

// Batch is a part of a run.
type Batch struct {
	Number, Of int // from 1
	Hosts      int // in it
	Before     Summary
	Pause      time.Duration // between it and the next
}

// ErrStopped is why a host was not started after a run had stopped.
var ErrStopped = errors.New("stopped before it was started")

// sizes cuts n hosts into batches.
func (p *Pace) sizes(n int) []int {
	if len(p.Batches) == 0 {
		return []int{n}
	}
	var sizes []int
	for left := n; left > 0; {
		size := p.Batches[min(len(sizes), len(p.Batches)-1)]
		now := min(max(int(math.Ceil(size.of(n))), 1), left)
		sizes = append(sizes, now)
		left -= now
	}
	return sizes
}

// begin waits for the turn of a batch and tells the sink, which may decline.
func (r *run) begin(b Batch) {
	if b.Of < 2 || r.starting.Err() != nil {
		return
	}
	if b.Number > 1 {
		r.sleep(r.Pace.Pause)
	}
	r.sinkMu.Lock()
	defer r.sinkMu.Unlock()
	if r.starting.Err() != nil || r.sinkErr != nil {
		return
	}
	b.Before, r.batch = r.summary, b
	err := r.sink.Batch(b)
	if declined, ok := errors.AsType[*Declined](err); ok {
		r.halt(declined.Why)
	} else if err != nil {
		r.fail(err)
	}
}

// Declined is a Sink's error that stops a run before a batch.
type Declined struct{ Why string }

func (e *Declined) Error() string { return e.Why }

// judge stops the starting when too many hosts have failed. sinkMu is held.
func (r *run) judge() {
	failed := r.summary.Failed + r.summary.Unreachable
	switch most := r.Pace.MaxFail; {
	case failed == 0:
	case r.Pace.FirstMustPass && r.batch.Number <= 1:
		r.halt(fmt.Sprintf("%d of the first %d hosts failed", failed, r.batch.Hosts))
	case most != nil && float64(failed) > most.of(r.total):
		r.halt(fmt.Sprintf("%d of %d hosts had failed, more than --max-fail %s", failed, r.total, most))
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
	r.stopStarting(ErrStopped)
}

// ended says why nothing new starts, if so.
func (r *run) ended() error {
	if r.starting.Err() == nil {
		return nil
	}
	return context.Cause(r.starting)
}
