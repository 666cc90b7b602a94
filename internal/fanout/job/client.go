package job

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// Client is the Executor of a run that launchers carry out. It offers a batch to them when all of
// its hosts are executed, and reads in the journal of the batch how they fare. It reads nothing of
// a part of the pace before all hosts of that are executed: a run that stops waits for each host
// that a launcher may start.
type Client struct {
	ID    string
	Hosts []host.Host // in the order of the run
	Sizes []int       // of the parts of the pace
	Begun int         // parts of the pace that had begun when the client was attached
	// Looks: the client offers and stops nothing.
	Looks bool
	// attached: a view that ends, such as a pipe, leaves the job.
	attached bool

	bus     Bus
	people  People
	life    context.Context // until Close
	end     context.CancelFunc
	left    context.Context // ends when the job goes on without this client
	leave   context.CancelCauseFunc
	reading sync.WaitGroup // what is kept, until the end of life
	writing sync.WaitGroup // that the job is stopped

	slots []slot // of the hosts
	pools map[string]*clientPool

	mu         sync.Mutex
	changed    sync.Cond // of what is executed, and of ending
	steps      []step
	open       int   // the first step that has not ended
	ending     bool  // nothing is offered any more
	stopping   *Stop // of somebody who has stopped it
	stoppedAt  time.Time
	level      int // what was asked for, of the numbers of stop entries; -1 if nothing was
	complained map[string]bool
}

// People are those who watch a Client.
type People struct {
	By     string            // who it is that may stop the job, for others
	Notice func(text string) // shows what is not about one host
}

// slot is a host on its way through a Client. attempt is there while it is executed.
type slot struct {
	batch   *clientBatch
	attempt fleet.Attempt
	done    chan *fleet.Outcome
}

// step is a part of the pace: how many of its hosts are executed, and have not ended.
type step struct{ size, executed, left int }

// clientBatch is a batch, and the Sink of what is read in its journal.
type clientBatch struct {
	fleet.Nothing
	client   *Client
	pool     string
	number   int
	step     int
	members  []int // hosts of the run, by their places in the batch
	executed int
	offered  bool // to launchers, which may start all of it
	begun    bool // a launcher has written to its journal
	ended    Bits

	reader   *output.Reader // used by what follows alone
	launcher string         // whose entry is read
}

// ErrLeft is the cause with which Execute returns while the job goes on.
var ErrLeft = errors.New("the job goes on without this view")

// FDs returns 0: launchers connect.
func (c *Client) FDs() int { return 0 }

// Execute waits until a launcher has run the command of the job on the host.
func (c *Client) Execute(ctx context.Context, _ host.Host, _ fleet.Command, a fleet.Attempt) fleet.Outcome {
	s := &c.slots[a.Index()]
	if c.execute(s, a) {
		c.offer(ctx, s.batch)
	}
	select {
	case o := <-s.done:
		return *o
	case <-c.left.Done():
	case <-ctx.Done():
		if c.interrupt(context.Cause(ctx), s.batch) {
			select {
			case o := <-s.done:
				if _, as := fleet.Stopped(fleet.ErrInterrupted); o.Err == as { // which is all that launchers know
					_, o.Err = fleet.Stopped(context.Cause(ctx))
				}
				return *o
			case <-c.left.Done():
			case <-a.Abort().Done():
			}
		}
	}
	o := fleet.Outcome{Exit: -1} // not started; or nobody sees it, since the job was left
	o.Stop(cmp.Or(context.Cause(ctx), c.Left()))
	return o
}

// execute notes that a host is executed, and reports whether its batch is to be offered now.
func (c *Client) execute(s *slot, a fleet.Attempt) (offer bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.attempt, s.done = a, make(chan *fleet.Outcome, 1)
	b := s.batch
	b.executed++
	c.steps[b.step].executed++
	c.changed.Broadcast()
	if b.executed < len(b.members) || c.ending {
		return false
	}
	b.offered = true
	p := c.pools[b.pool]
	if p.left == 0 {
		p.offered = time.Now()
	}
	p.left += len(b.members)
	return !b.begun && !c.Looks
}

// offer adds a batch to the work of its pool. A hub that refuses is asked again.
func (c *Client) offer(ctx context.Context, b *clientBatch) {
	for wait := false; ; wait = true {
		err := c.bus.Put(ctx, Entry{Subject: subject(batchKind, b.pool, c.ID, b.number)})
		if err == nil || ctx.Err() != nil {
			return
		}
		c.complain("the hub", fmt.Errorf("it does not take a batch of pool %s: %w", b.pool, err))
		if wait {
			sched.For(ctx, again)
		}
	}
}

// again is between two tries of what the hub refuses.
const again = 2 * time.Second

// interrupt stops the job when the run ends, or leaves it, and reports whether a launcher may start
// hosts of the batch all the same.
func (c *Client) interrupt(cause error, b *clientBatch) (offered bool) {
	if c.attached && !errors.Is(cause, fleet.ErrFailFast) {
		c.Leave(ErrLeft)
	}
	c.stop(cause.Error(), stopRunning)
	c.mu.Lock()
	defer c.mu.Unlock()
	return b.offered
}

// follow reads the journals of all batches.
func (c *Client) follow() {
	for e, err := range c.bus.Follow(c.life, allOf(eventKind, c.ID), FollowOptions{}) {
		if err != nil {
			c.leave(fmt.Errorf("%w: %w", ErrLeft, err))
			return
		}
		c.read(e)
	}
}

// read passes an entry on to the hosts that it is about. Nothing in it is trusted but to be that of
// a launcher of its pool.
func (c *Client) read(e Entry) {
	pool, _, number, _ := parts(e.Subject)
	state, err := stateOf(e.Header)
	launcher := nameOf(state.Owner)
	who := fmt.Sprintf("launcher %s of pool %s", launcher, pool)
	p := c.pools[pool]
	if p == nil || number >= len(p.batches) || !c.turn(p.batches[number]) {
		c.complain(who, fmt.Errorf("it writes about batch %d, which was not offered", number))
		return
	}
	b := p.batches[number]
	b.launcher = launcher
	if err != nil {
		c.complain(who, err)
	}
	if b.reader == nil {
		b.reader = output.NewReader(b.hosts(), b)
	}
	for line := range bytes.SplitSeq(bytes.TrimSuffix(e.Data, []byte("\n")), []byte("\n")) {
		if err := b.reader.Line(line); err != nil && len(line) > 0 {
			c.complain(who, err)
		}
	}
	for _, at := range b.missing(&state) {
		b.close(at, &fleet.Outcome{Launcher: b.launcher, Ran: fleet.RanUnknown, Exit: -1, Class: fleet.Lost, Err: "its launcher sent no result that can be read"})
	}
	if state.Ended.Count() == len(b.members) {
		b.reader = nil
	}
}

// missing returns the hosts that have ended without a result.
func (b *clientBatch) missing(s *State) (places []int) {
	b.client.mu.Lock()
	defer b.client.mu.Unlock()
	for at := range b.members {
		if s.Ended.Has(at) && !b.ended.Has(at) {
			places = append(places, at)
		}
	}
	return places
}

// turn waits until all hosts of the batch's step are executed, or nobody executes more. It reports
// false if earlier steps have not ended: no launcher was offered the batch.
func (c *Client) turn(b *clientBatch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.open < len(c.steps) && c.steps[c.open].left == 0 {
		c.open++
	}
	if b.step > c.open {
		return false
	}
	b.begun = true
	for s := &c.steps[b.step]; s.executed < s.size && !c.ending; {
		c.changed.Wait()
	}
	return true
}

// complain shows the first thing that is wrong with somebody.
func (c *Client) complain(who string, err error) {
	c.mu.Lock()
	said := c.complained[who]
	c.complained[who] = true
	c.mu.Unlock()
	if !said {
		c.people.Notice(fmt.Sprintf("%s: %s", who, err))
	}
}

// hosts returns the hosts of the batch.
func (b *clientBatch) hosts() []host.Host {
	hosts := make([]host.Host, len(b.members))
	for at, i := range b.members {
		hosts[at] = b.client.Hosts[i]
	}
	return hosts
}

// attempt returns the attempt at a host that has not ended, nil if there is none.
func (b *clientBatch) attempt(at int) fleet.Attempt {
	b.client.mu.Lock()
	defer b.client.mu.Unlock()
	return b.client.slots[b.members[at]].attempt
}

// Started reports that the host has begun. Its launcher alone knows how far it is.
func (b *clientBatch) Started(at int) error {
	if a := b.attempt(at); a != nil {
		a.Reached(fleet.PhaseExec)
	}
	return nil
}

// Output passes on a piece of output.
func (b *clientBatch) Output(e fleet.Event) error {
	if a := b.attempt(e.Index); a != nil {
		_ = a.OutputAt(e.Time, e.Stream, e.Data) // the run ends Execute
	}
	return nil
}

// Done ends a host.
func (b *clientBatch) Done(r fleet.Result, _ fleet.Summary) error {
	o := r.Outcome
	if o.Measured = &r; CheckName("launcher", o.Launcher) != nil { // the owner may have changed since then
		o.Launcher = b.launcher
	}
	b.close(r.Index, &o)
	return nil
}

// close ends a host, once.
func (b *clientBatch) close(at int, o *fleet.Outcome) {
	c := b.client
	c.mu.Lock()
	defer c.mu.Unlock()
	if b.ended.Has(at) {
		return
	}
	b.ended.Add(at)
	c.steps[b.step].left--
	if b.offered {
		c.pools[b.pool].left--
	}
	if s := &c.slots[b.members[at]]; s.attempt != nil {
		s.attempt = nil
		s.done <- o
	}
}
