package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/termsafe"
	"sshpace/internal/base/unit"
	"sshpace/internal/fanout"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// batch is a batch that a launcher has taken.
type batch struct {
	*launcher
	job    *carried
	number int
	hosts  []host.Host
	writer *writer
	lines  *output.JSON // into writer
	enough context.Context
	lost   context.CancelCauseFunc // of enough
	done   chan struct{}           // closed when this launcher is through with it

	mu    sync.Mutex
	work  Work
	taken bool // another launcher has taken it over
	given bool // it is left to others
}

// carry carries out a batch. begun is called when its hosts are counted.
func (l *launcher) carry(w Work, begun func()) {
	defer begun()
	_, id, number, ours := parts(w.Subject())
	if !ours {
		_ = w.Done(l.hard)
		return
	}
	b := &batch{launcher: l, number: number, work: w, done: make(chan struct{})}
	subject := subject(eventKind, l.Pool, id, number)
	if !l.enter(subject, b, begun) {
		return
	}
	defer func() {
		l.mu.Lock()
		delete(l.batches, subject)
		l.mu.Unlock()
		close(b.done)
	}()
	life, end := context.WithCancel(l.hard)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer end()
	beside.Go(func() { b.hold(life) })
	err := b.begin(id, subject, life, &beside)
	if err == nil {
		defer l.leave(b.job)
		defer b.lost(nil)
		b.carry(begun)
		return
	}
	if l.drain.Err() == nil {
		l.Say(fmt.Sprintf("batch %d of job %s cannot be carried out: %s", number, id, termsafe.Line(err.Error())))
	}
	if errors.Is(err, errUnreadable) {
		_ = b.current().Done(l.hard)
		return
	}
	sched.For(l.drain, again) // another launcher may be able to
	b.back()
}

// enter makes b the batch that is worked on. If this launcher works on it already, the hub had
// thought it lost: that one has a new lease, or b begins when it has ended, since others took it
// over meanwhile.
func (l *launcher) enter(subject string, b *batch, begun func()) bool {
	for {
		l.mu.Lock()
		old := l.batches[subject]
		if old == nil {
			l.batches[subject] = b
		}
		l.mu.Unlock()
		if old == nil {
			return true
		}
		if old.adopt(b.work) {
			return false
		}
		begun()
		<-old.done
	}
}

// adopt gives the batch a new lease, unless it is another's.
func (b *batch) adopt(w Work) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken || b.given {
		return false
	}
	b.work = w
	return true
}

func (b *batch) current() Work {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.work
}

// back leaves the batch to other launchers, once. What runs here goes on.
func (b *batch) back() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.given {
		return
	}
	b.given = true
	if err := b.work.Back(); err != nil {
		b.Say("a batch is left for others only after its lease: " + termsafe.Line(err.Error()))
	}
}

// hold keeps the lease, until ctx ends.
func (b *batch) hold(ctx context.Context) {
	for sched.For(ctx, b.Lease/3) {
		b.mu.Lock()
		w, given := b.work, b.given
		b.mu.Unlock()
		if !given {
			_ = w.Working(ctx) // if the lease is lost, another launcher says so in the journal
		}
	}
}

// begin makes the batch ready: its job, its hosts and its journal.
func (b *batch) begin(id, subject string, life context.Context, beside *sync.WaitGroup) (err error) {
	if b.job, err = b.launcher.job(id); b.job == nil {
		return err
	}
	defer func() {
		if err != nil {
			b.leave(b.job)
		}
	}()
	if err != nil {
		return err
	}
	if b.hosts, err = b.job.Hosts(b.number); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	enough := b.drain
	if b.job.refused == nil {
		enough = b.job.enough
	}
	b.enough, b.lost = context.WithCancelCause(enough)
	b.writer = &writer{
		bus: b.Bus, subject: subject, instance: b.instance, idempotent: b.job.Idempotent, id: b.entry, life: life, trouble: b.trouble,
		note: func(started Bits) error { return b.job.seen.note(b.number, started) },
		lost: func(why error) {
			b.mu.Lock()
			b.taken = true
			b.mu.Unlock()
			b.lost(why)
		},
	}
	if err = b.writer.begin(b.drain); err != nil {
		b.lost(nil)
		return err
	}
	if b.job.refused == nil {
		b.writer.state.Started.Join(b.job.seen.of(b.number))
	}
	beside.Go(b.writer.keep)
	b.lines = output.NewRecord(b.writer, output.How{})
	return b.lines.Begin(fleet.Start{ID: id, Time: time.Now(), Hosts: b.hosts})
}

// entry returns a new id of an entry.
func (l *launcher) entry() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries++
	return fmt.Sprint(l.instance, ".", l.entries)
}

// trouble reports once that the hub keeps no entries, and once that it does.
func (l *launcher) trouble(err error) {
	l.mu.Lock()
	said := l.said
	l.said = err != nil
	l.mu.Unlock()
	switch {
	case err != nil && !said:
		l.Say("the hub keeps no entries, so no host starts: " + termsafe.Line(err.Error()))
	case err == nil && said:
		l.Say("the hub keeps entries again")
	}
}

// carry runs what hosts are left, until all have ended, or the batch is another launcher's.
func (b *batch) carry(begun func()) {
	defer context.AfterFunc(b.drain, func() {
		if len(b.free(false)) > 0 {
			b.back()
		}
	})()
	gone := false // whoever had it before
	for {
		if some := b.free(gone); len(some) > 0 {
			b.run(some, begun)
		}
		begun()
		if b.writer.flush() != nil {
			return
		}
		state, taken := b.writer.now()
		switch ended := state.Ended.Count(); {
		case ended >= len(b.hosts):
			b.Say(fmt.Sprintf("job %s: batch %d has ended: %s, %d failed", b.job.key, b.number, unit.Count(ended, "host"), state.Failed.Count()))
			_ = b.current().Done(b.hard)
			return
		case taken:
			b.Say(fmt.Sprintf("job %s: batch %d was taken over by %s", b.job.key, b.number, termsafe.Line(state.Owner)))
			return
		case b.drain.Err() != nil:
			b.back()
			return
		}
		if gone = b.await(); gone && !b.job.Idempotent {
			b.unknown()
		}
	}
}

// free returns the places of the hosts that may start here; gone says that whoever had the batch
// before is.
func (b *batch) free(gone bool) (some []int) {
	state, taken := b.writer.now()
	for i := range b.hosts {
		others := state.Started.Has(i) && !(gone && b.job.Idempotent && !b.writer.started(i))
		if !taken && !state.Ended.Has(i) && !others {
			some = append(some, i)
		}
	}
	return some
}

// run runs the command on hosts, or refuses it for each of them.
func (b *batch) run(some []int, begun func()) {
	hosts := make([]host.Host, len(some))
	for i, at := range some {
		hosts[i] = b.hosts[at]
	}
	b.count(len(some), 0)
	begun()
	sink := &batchSink{batch: b, at: some, ran: make([]bool, len(some))}
	j := b.job
	if j.refused != nil {
		for i := range some {
			_ = sink.Done(fleet.Result{Index: i, Host: hosts[i], Attempts: 1, Outcome: fleet.Outcome{
				Exit: -1, Class: fleet.Local, Err: fmt.Sprintf("launcher %s refuses the job: %s", b.Name, j.refused),
			}}, fleet.Summary{})
		}
		return
	}
	p := fanout.Params{
		Room: j.room, Fanout: j.Fanout, CommandTimeout: time.Duration(j.TimeoutNS), MaxOutput: j.MaxOutput, Drain: j.polite, Enough: b.enough,
		Pace: fanout.Pace{Splay: time.Duration(j.SplayNS)}, RetryFor: time.Duration(j.RetryForNS), RetryDown: j.RetryDown, Permit: sink.permit,
	}
	_, _ = fanout.Run(b.hard, p, hosts, fleet.Command{}, ownCommands{j.executor, &j.Spec}, sink) // its sink fails only when hard ends
}

// ownCommands runs the command of each host.
type ownCommands struct {
	fleet.Executor
	spec *Spec
}

func (o ownCommands) Execute(ctx context.Context, h host.Host, _ fleet.Command, a fleet.Attempt) fleet.Outcome {
	return o.Executor.Execute(ctx, h, o.spec.Command(h), a)
}

// batchSink writes what some of the hosts do into the journal.
type batchSink struct {
	fleet.Nothing
	*batch
	at  []int // their places in the batch
	mu  sync.Mutex
	ran []bool // whether they count as running
}

// permit returns when the hub knows that a host starts.
func (s *batchSink) permit(ctx context.Context, index int) error {
	err := s.writer.start(ctx, s.at[index])
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil && !s.ran[index] {
		s.ran[index] = true
		s.count(-1, +1)
	}
	return err
}

func (s *batchSink) Started(index int) error { return s.lines.Started(s.at[index]) }

func (s *batchSink) Output(e fleet.Event) error {
	e.Index = s.at[e.Index]
	return s.lines.Output(e)
}

// Done writes the end of a host. One that was not started goes back, unless its job is halted.
func (s *batchSink) Done(r fleet.Result, _ fleet.Summary) error {
	s.mu.Lock()
	if s.ran[r.Index] {
		s.count(0, -1)
	} else {
		s.count(-1, 0)
	}
	s.mu.Unlock()
	r.Index = s.at[r.Index]
	if r.Status() == fleet.NotStarted && !s.writer.started(r.Index) {
		why, is := errors.AsType[*halted](context.Cause(s.enough))
		if !is {
			return nil
		}
		r.Err = why.Error()
	}
	if r.Hint != "" && r.Ran == fleet.RanNo {
		r.Hint = fmt.Sprintf("on launcher %s: %s", s.Name, r.Hint) // its files, not those of the reader
	}
	return s.end(r)
}

// end writes the end of a host.
func (b *batch) end(r fleet.Result) error {
	r.Launcher = cmp.Or(r.Launcher, b.Name)
	err := b.lines.Done(r, fleet.Summary{})
	b.writer.end(r.Index, r.Status() == fleet.Failed || r.Status() == fleet.Unreachable)
	return err
}

// unknown ends hosts that a launcher has started which is gone.
func (b *batch) unknown() {
	who := nameOf(b.writer.previous())
	lost := fmt.Sprintf("launcher %s was lost while the command may have run", who)
	if who == "" {
		lost = fmt.Sprintf("the hub has lost the results of launcher %s; the command may have run", b.Name)
	}
	state, _ := b.writer.now()
	for i, h := range b.hosts {
		if state.Started.Has(i) && !state.Ended.Has(i) && !b.writer.started(i) {
			_ = b.end(fleet.Result{Index: i, Host: h, Phase: fleet.PhaseExec, Attempts: 1, Outcome: fleet.Outcome{
				Launcher: who, Exit: -1, Ran: fleet.RanUnknown, Class: fleet.Lost, Err: lost, Hint: "--rerun leaves it out, --rerun failed,unknown includes it",
			}})
		}
	}
}

// A hub that was away may have lost who is alive, and others come back to it later than this one:
// they have returning to say so, and rebuilding where the hub knows of nobody.
const (
	returning  = 5 * time.Second
	rebuilding = 10 * time.Second
)

func answered(err error) bool { return err == nil || errors.Is(err, ErrNoEntry) }

// await waits for the ends of hosts that another launcher has started. It returns true if that one
// is gone: it has not said for a lease that it is alive, by our own clock, while the hub answered.
func (b *batch) await() (gone bool) {
	before := b.writer.previous()
	name := nameOf(before)
	if name == b.Name || CheckName("launcher", name) != nil {
		return true // there is one of our name at a time
	}
	every := min(b.Lease/3, time.Second)
	heard, seq := time.Now(), uint64(0)
	for sched.For(b.drain, every) {
		asked := time.Now()
		refreshed := b.writer.refresh(b.drain)
		if state, taken := b.writer.now(); taken || state.Ended.Count() >= len(b.hosts) {
			return false
		}
		var other Alive
		last, err := b.Bus.Last(b.drain, aliveSubject(b.Pool, name))
		switch restarted := errors.Is(err, ErrNoEntry) && seq != 0; {
		case err == nil && last.Seq != seq:
			heard, seq = time.Now(), last.Seq
			_ = json.Unmarshal(last.Data, &other)
		case restarted || time.Since(asked) > time.Second:
			heard, seq = time.Now().Add(returning), 0
		}
		limit := b.Lease
		if seq == 0 {
			limit = max(limit, rebuilding)
		}
		if answered(refreshed) && answered(err) && (time.Since(heard) > limit || other.Instance != "" && other.Instance != before) {
			return true
		}
	}
	return false
}
