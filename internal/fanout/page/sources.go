package page

import (
	"cmp"
	"context"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/history"
)

// hubJobs shows the jobs of a hub.
type hubJobs struct {
	bus   job.Bus
	board atomic.Pointer[job.Board]
}

// again is how long a board is followed until a new one is made, so that jobs that were removed do
// not stay.
const again = 10 * time.Minute

// follow keeps the board current.
func (h *hubJobs) follow(ctx context.Context) {
	for ctx.Err() == nil {
		b := &job.Board{}
		if b.Follow(ctx, h.bus, true) == nil {
			h.board.Store(b)
			round, cancel := context.WithTimeout(ctx, again)
			_ = b.Follow(round, h.bus, false)
			cancel()
		}
		sched.For(ctx, refresh)
	}
}

func (h *hubJobs) overview(ctx context.Context) overview {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	o := overview{Title: "Jobs of the hub" + onMachine()}
	status, err := h.bus.Status(ctx)
	if o.Hub = &status; err != nil {
		o.Trouble = "The hub does not answer: these are the last numbers that it has sent."
	}
	b := h.board.Load()
	if b == nil {
		o.Trouble = cmp.Or(o.Trouble, "What the hub keeps is being read.")
		return o
	}
	o.Jobs, o.Launchers = b.Jobs(), b.Launchers()
	return o
}

func (h *hubJobs) replay(ctx context.Context, o *job.Overview, sink fleet.Sink) error {
	return o.Replay(ctx, h.bus, sink)
}

func (h *hubJobs) stop(ctx context.Context, o *job.Overview) error {
	return job.StopJob(ctx, h.bus, o.ID, true, "somebody at the page")
}

// runs shows the detached runs of this machine.
type runs struct {
	store *history.Store

	mu   sync.Mutex
	over map[string]job.Overview // those that have ended, which change no more
}

func (r *runs) overview(context.Context) overview {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids, err := r.store.Jobs()
	o, over := overview{Title: "Detached runs" + onMachine()}, map[string]job.Overview{}
	if err != nil {
		o.Trouble = err.Error()
	}
	for _, id := range ids {
		run, known := r.over[id]
		if !known {
			rec, err := r.store.Read(id)
			if err != nil { // it was removed, or it has just begun
				continue
			}
			run, known = overviewOf(rec), !rec.Live
		}
		if o.Jobs = append(o.Jobs, run); known {
			over[id] = run
		}
	}
	r.over = over
	return o
}

// overviewOf returns a run as if it was a job of one pool, and of one batch.
func overviewOf(rec *history.Record) job.Overview {
	n := job.Count{Hosts: len(rec.Hosts), Started: len(rec.Started)}
	n.Ended, n.Failed = rec.Ended()
	return job.Overview{
		ID: rec.ID, Text: rec.Command, Start: rec.Start, Stage: job.Stage(rec.State()), Pools: []*job.Pool{{Batches: []job.Batch{{Count: n}}}},
	}
}

func (r *runs) read(o *job.Overview) (*history.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.store.Read(o.ID)
}

func (r *runs) replay(_ context.Context, o *job.Overview, sink fleet.Sink) error {
	rec, err := r.read(o)
	if err != nil {
		return err
	}
	return r.store.Replay(rec, func(*history.Record, fleet.Start) (fleet.Sink, error) { return sink, nil })
}

func (r *runs) stop(ctx context.Context, o *job.Overview) error {
	rec, err := r.read(o)
	if err == nil {
		_, err = r.store.Stop(ctx, rec, false)
	}
	return err
}

// onMachine names this machine, where it has a name.
func onMachine() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return " on " + name
}
