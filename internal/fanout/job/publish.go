package job

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"sshpace/internal/base/host"
)

// Plan is a job before it is published.
type Plan struct {
	Spec    Spec // what is the same for all pools, with its ID
	Hosts   []host.Host
	Pool    func(host.Host) string
	Sizes   []int                  // of the parts of the pace
	Line    func(host.Host) string // the command line of a host; nil: that of Spec
	Expires time.Duration
	Sign    func(ctx context.Context, manifest []byte) ([]byte, error)
}

// Publish signs a job and keeps it at the hub. Nothing of it starts before its hosts are executed.
func Publish(ctx context.Context, bus Bus, p Plan, people People) (*Client, error) {
	batches, places, err := Cut(p.Hosts, p.Pool, p.Sizes)
	if err != nil {
		return nil, err
	}
	specs := map[string]*Spec{}
	for pool, sets := range batches {
		s := p.Spec
		s.Schema, s.Pool, s.Batches, s.Steps = Schema, pool, sets, make([]int, len(p.Sizes))
		specs[pool] = &s
	}
	for step, i := 0, 0; step < len(p.Sizes); step++ {
		for range p.Sizes[step] {
			p.note(specs[places[i].Pool], p.Hosts[i], places[i], step)
			i++
		}
	}
	m, data, err := NewManifest(specs, time.Now(), p.Expires)
	if err != nil {
		return nil, err
	}
	if err := send(ctx, bus, &p, m, data); err != nil {
		return nil, err
	}
	c := newClient(bus, people, &Client{ID: p.Spec.ID, Hosts: p.Hosts, Sizes: p.Sizes}, places)
	c.start()
	return c, nil
}

// note adds what is a host's own to the Spec of its pool.
func (p *Plan) note(s *Spec, h host.Host, at Place, step int) {
	if at.At == 0 {
		s.Steps[step]++
	}
	if p.Line != nil {
		if s.Own == nil {
			s.Own = map[string]string{}
		}
		s.Own[h.Exact()] = p.Line(h)
	}
}

// send signs the manifest and keeps the parts of the job.
func send(ctx context.Context, bus Bus, p *Plan, m Manifest, specs map[string][]byte) error {
	manifest, err := json.Marshal(m)
	if err != nil {
		return err
	}
	signature, err := p.Sign(ctx, manifest)
	if err != nil {
		return err
	}
	for pool, spec := range specs {
		signed := Signed{Manifest: manifest, Signature: signature, Spec: spec}
		entries, err := signed.entries(pool, p.Spec.ID)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := bus.Put(ctx, e); err != nil {
				return fmt.Errorf("publish the job: %w", err)
			}
		}
	}
	return nil
}

// Attach returns the client of a job that the hub keeps, and the part of it for one of its pools.
// It runs what the job's first client would have run, and hosts that have ended end as they did.
// With looks it only shows what other clients run.
func Attach(ctx context.Context, bus Bus, id string, looks bool, people People) (*Client, *Spec, error) {
	specs, err := specsOf(ctx, bus, id)
	if err != nil {
		return nil, nil, err
	}
	c, places := &Client{ID: id, Looks: looks, attached: true}, []Place(nil)
	var spec *Spec
	next := map[string]int{} // batch of each pool
	for step, more := 0, true; more; step++ {
		before := len(c.Hosts)
		more = false
		for _, pool := range slices.Sorted(maps.Keys(specs)) {
			spec = specs[pool]
			more = more || step+1 < len(spec.Steps)
			for range spec.batches(step) {
				hosts, err := spec.Hosts(next[pool])
				if err != nil {
					return nil, nil, err
				}
				for at := range hosts {
					places = append(places, Place{pool, next[pool], at})
				}
				c.Hosts = append(c.Hosts, hosts...)
				next[pool]++
			}
		}
		c.Sizes = append(c.Sizes, len(c.Hosts)-before)
	}
	if looks {
		c.Sizes = []int{len(c.Hosts)} // in whatever order
	}
	c = newClient(bus, people, c, places)
	if err := c.resume(ctx); err != nil {
		return nil, nil, err
	}
	c.start()
	return c, spec, nil
}

// batches returns how many batches belong to a part of the pace.
func (s *Spec) batches(step int) int {
	if step >= len(s.Steps) {
		return 0
	}
	return s.Steps[step]
}

// StopJob stops a job of a hub: no host of it starts any more, and with running the commands that
// run are ended, too.
func StopJob(ctx context.Context, bus Bus, id string, running bool, by string) error {
	specs, err := specsOf(ctx, bus, id)
	if err != nil {
		return err
	}
	level := stopStarting
	if running {
		level = stopRunning
	}
	s := Stop{By: by, Why: "stopped by " + by}
	return s.put(ctx, bus, id, slices.Collect(maps.Keys(specs)), level)
}

// specsOf reads a job by its pools. Launchers verify it; of what a client does with it, nothing
// depends on who signed it.
func specsOf(ctx context.Context, bus Bus, id string) (map[string]*Spec, error) {
	all, err := load(ctx, bus, "*", id)
	if err != nil {
		return nil, err
	}
	specs := map[string]*Spec{}
	for pool, signed := range all {
		specs[pool] = &Spec{}
		if err := json.Unmarshal(signed.Spec, specs[pool]); err != nil {
			return nil, fmt.Errorf("job %s of pool %s cannot be read: %w", id, pool, err)
		}
	}
	return specs, nil
}

// resume notes which batches have begun.
func (c *Client) resume(ctx context.Context) error {
	for e, err := range c.bus.Follow(ctx, allOf(eventKind, c.ID), FollowOptions{Until: true, Headers: true, Last: true}) {
		if err != nil {
			return err
		}
		pool, _, number, _ := parts(e.Subject)
		if p := c.pools[pool]; p != nil && number < len(p.batches) {
			b := p.batches[number]
			b.begun = true
			c.Begun = max(c.Begun, b.step+1)
		}
	}
	return nil
}

// newClient completes a client.
func newClient(bus Bus, people People, c *Client, places []Place) *Client {
	c.bus, c.people, c.changed.L = bus, people, &c.mu
	c.life, c.end = context.WithCancel(context.Background())
	c.left, c.leave = context.WithCancelCause(c.life)
	c.level = -1
	c.slots, c.pools, c.complained = make([]slot, len(c.Hosts)), map[string]*clientPool{}, map[string]bool{}
	i := 0
	for n, size := range c.Sizes {
		c.steps = append(c.steps, step{size: size, left: size})
		for range size {
			c.slots[i].batch = c.put(i, places[i], n)
			i++
		}
	}
	return c
}

// put puts a host into its batch.
func (c *Client) put(index int, at Place, step int) *clientBatch {
	p := c.pools[at.Pool]
	if p == nil {
		p = &clientPool{}
		c.pools[at.Pool] = p
	}
	for len(p.batches) <= at.Batch {
		p.batches = append(p.batches, &clientBatch{client: c, pool: at.Pool, number: len(p.batches)})
	}
	b := p.batches[at.Batch]
	b.step = step
	for len(b.members) <= at.At {
		b.members = append(b.members, 0)
	}
	b.members[at.At] = index
	return b
}
