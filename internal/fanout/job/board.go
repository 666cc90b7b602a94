package job

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/base/sched"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// Board is an overview of all jobs of a hub, as the hub reports them: nothing is verified. Follow
// fills it. The zero value is empty.
type Board struct {
	mu    sync.Mutex
	jobs  map[string]*Overview
	alive map[string]Living
}

// Overview is how far a job is.
type Overview struct {
	ID, Text string // Text is the command
	Start    time.Time
	Expires  time.Time // zero: never
	Stopped  string    // by whom, "" if nobody has
	Stage    Stage
	Pools    []*Pool // by name
}

// Pool is the part of a job that is for one pool.
type Pool struct {
	Name    string
	Batches []Batch
	parts   [][]byte // of the signed job, until it has all
	known   bool     // it had all
}

// Batch is how far the hosts of a batch are.
type Batch struct {
	Set   string // the hosts
	Owner string // the launcher, "" while there is none
	Count
}

// Count counts hosts: those that have ended were started or refused, those that failed have ended.
type Count struct{ Hosts, Started, Ended, Failed int }

// Living is a launcher that was heard of in the last minutes.
type Living struct {
	Pool string    `json:"pool"`
	Name string    `json:"name"`
	Seen time.Time `json:"seen"` // by the clock of this machine
	Alive
}

// Stage is what becomes of a job.
type Stage string

// The stages of a job.
const (
	Waiting Stage = "waiting" // no host was started
	Running Stage = "running"
	Done    Stage = "done" // all hosts have ended
	Halted  Stage = "stopped"
	Expired Stage = "expired" // before all hosts were started
)

// Stages are all of them.
var Stages = []Stage{Running, Waiting, Done, Halted, Expired}

// Count sums up the hosts of a pool.
func (p *Pool) Count() (n Count) {
	for _, b := range p.Batches {
		n.add(Count{b.Hosts, min(b.Started, b.Hosts), min(b.Ended, b.Hosts), min(b.Failed, b.Hosts)}) // a launcher may lie
	}
	return n
}

// Count sums up all hosts.
func (o *Overview) Count() (n Count) {
	for _, p := range o.Pools {
		n.add(p.Count())
	}
	return n
}

func (c *Count) add(other Count) {
	c.Hosts, c.Started, c.Ended, c.Failed = c.Hosts+other.Hosts, c.Started+other.Started, c.Ended+other.Ended, c.Failed+other.Failed
}

// stage returns the stage of the job at a time.
func (o *Overview) stage(now time.Time) Stage {
	switch n := o.Count(); {
	case n.Hosts > 0 && n.Ended >= n.Hosts:
		return Done
	case o.Stopped != "":
		return Halted
	case n.Started < n.Hosts && !o.Expires.IsZero() && now.After(o.Expires):
		return Expired
	case n.Started == 0:
		return Waiting
	}
	return Running
}

// Follow reads what the hub keeps of all jobs, but no output. With until it returns then, otherwise
// it keeps the board current until ctx ends.
func (b *Board) Follow(ctx context.Context, bus Bus, until bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	kinds := []string{jobKind, stopKind, eventKind, aliveKind}
	sched.Do(len(kinds), len(kinds), func(i int) {
		events := kinds[i] == eventKind // the last one of each batch has its whole state
		for e, err := range bus.Follow(ctx, kinds[i]+".*.>", FollowOptions{Until: until, Headers: events, Last: events}) {
			if err != nil {
				cancel(err)
				return
			}
			b.apply(e)
		}
	})
	return context.Cause(ctx)
}

// apply notes an entry. One that cannot be read is left out: a hub is not trusted to have none.
func (b *Board) apply(e Entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs == nil {
		b.jobs, b.alive = map[string]*Overview{}, map[string]Living{}
	}
	pool, id, number, whole := parts(e.Subject)
	switch kind, rest, _ := strings.Cut(e.Subject, "."); {
	case kind == aliveKind:
		l := Living{Seen: time.Now()}
		if age := l.Seen.Sub(e.Time); age > 0 && age < AliveAge { // otherwise one of the clocks is wrong
			l.Seen = e.Time
		}
		l.Pool, l.Name, _ = strings.Cut(rest, ".")
		if json.Unmarshal(e.Data, &l.Alive) == nil {
			b.alive[rest] = l
		}
	case kind == stopKind && whole:
		var s Stop
		_ = json.Unmarshal(e.Data, &s) // whoever it was
		b.of(id).Stopped = cmp.Or(s.By, "somebody")
	case kind == jobKind && whole:
		b.of(id).part(b.of(id).pool(pool), number, e)
	case kind == eventKind && whole:
		p := b.of(id).pool(pool)
		s, err := stateOf(e.Header)
		if err != nil || number >= mostBatches || p.known && number >= len(p.Batches) {
			return
		}
		for len(p.Batches) <= number { // the job comes later
			p.Batches = append(p.Batches, Batch{})
		}
		batch := &p.Batches[number]
		batch.Owner = nameOf(s.Owner)
		batch.Started, batch.Ended, batch.Failed = s.Started.Count(), s.carried(), s.Failed.Count()
	}
}

// mostBatches bounds the batches of a pool: an entry may claim to be of any.
const mostBatches = 100_000

func (b *Board) of(id string) *Overview {
	if b.jobs[id] == nil {
		b.jobs[id] = &Overview{ID: id}
	}
	return b.jobs[id]
}

func (o *Overview) pool(name string) *Pool {
	i, found := slices.BinarySearchFunc(o.Pools, name, func(p *Pool, name string) int { return strings.Compare(p.Name, name) })
	if !found {
		o.Pools = slices.Insert(o.Pools, i, &Pool{Name: name})
	}
	return o.Pools[i]
}

// part notes the next part of the job for a pool, and reads the job when it has all of them.
func (o *Overview) part(p *Pool, number int, e Entry) {
	n, _ := strconv.Atoi(e.Header[partsHeader])
	if p.known || number != len(p.parts) || number >= n || n > mostParts {
		return
	}
	if p.parts = append(p.parts, e.Data); len(p.parts) < n {
		return
	}
	var m Manifest
	var s Spec
	signed, err := joined(p.parts)
	if p.parts = nil; err != nil || json.Unmarshal(signed.Manifest, &m) != nil || json.Unmarshal(signed.Spec, &s) != nil {
		return
	}
	o.Text, o.Start, o.Expires, p.known = cmp.Or(s.Text, s.Line), m.Time, m.Expires, true
	p.Batches = append(p.Batches, make([]Batch, len(s.Batches))...)[:len(s.Batches)]
	for i, set := range s.Batches {
		hosts, _ := s.Hosts(i) // none of a set that cannot be read
		p.Batches[i].Set, p.Batches[i].Hosts = set, len(hosts)
	}
}

// Replay reports to sink, batch by batch, what launchers have reported so far. Those of a batch are
// not trusted with hosts of others.
func (o *Overview) Replay(ctx context.Context, bus Bus, sink fleet.Sink) error {
	var all []host.Host
	readers := map[string]*output.Reader{} // of batches, by their subjects
	for _, p := range o.Pools {
		for k, b := range p.Batches {
			hosts, _ := (&Spec{Batches: []string{b.Set}}).Hosts(0)
			readers[subject(eventKind, p.Name, o.ID, k)] = output.NewReader(hosts, behind{sink, len(all)})
			all = append(all, hosts...)
		}
	}
	err := sink.Begin(fleet.Start{ID: o.ID, Time: o.Start, Command: o.Text, Hosts: all})
	var wrong error
	for e, failed := range bus.Follow(ctx, allOf(eventKind, o.ID), FollowOptions{Until: true}) {
		if err = cmp.Or(err, failed); err != nil {
			return err
		}
		for line := range bytes.Lines(e.Data) {
			if r := readers[e.Subject]; r != nil {
				wrong = cmp.Or(wrong, r.Line(bytes.TrimSuffix(line, []byte("\n"))))
			}
		}
	}
	return cmp.Or(err, wrong)
}

// behind is a sink for hosts whose places are behind those of others.
type behind struct {
	fleet.Sink
	first int
}

func (b behind) Started(index int) error { return b.Sink.Started(b.first + index) }

func (b behind) Output(e fleet.Event) error {
	e.Index += b.first
	return b.Sink.Output(e)
}

func (b behind) Done(r fleet.Result, so fleet.Summary) error {
	r.Index += b.first
	return b.Sink.Done(r, so)
}

// Jobs returns the jobs, the newest first.
func (b *Board) Jobs() (list []Overview) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, o := range b.jobs {
		seen := *o
		seen.Pools = nil
		for _, p := range o.Pools {
			if p.known {
				seen.Pools = append(seen.Pools, &Pool{Name: p.Name, Batches: slices.Clone(p.Batches)})
			}
		}
		if seen.Stage = seen.stage(time.Now()); len(seen.Pools) > 0 {
			list = append(list, seen)
		}
	}
	slices.SortFunc(list, func(a, b Overview) int { return cmp.Or(b.Start.Compare(a.Start), strings.Compare(a.ID, b.ID)) })
	return list
}

// Launchers returns the launchers that are alive, by pool and name.
func (b *Board) Launchers() []Living {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.alive, func(_ string, l Living) bool { return time.Since(l.Seen) > AliveAge })
	return slices.SortedFunc(maps.Values(b.alive), func(a, b Living) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Name, b.Name))
	})
}
