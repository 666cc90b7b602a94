package job

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// clientPool is a pool as a client sees it.
type clientPool struct {
	batches []*clientBatch
	left    int       // hosts that launchers have or wait for
	offered time.Time // when there were some again
	heard   time.Time // when a launcher said that it lives
	missed  bool      // people know that none is alive
}

// A launcher says that it lives every few seconds. One that is silent for missing, or that has
// never been heard of since missingFirst, is not there.
const (
	missing      = 45 * time.Second
	missingFirst = 3 * time.Second
)

// start begins to follow the job.
func (c *Client) start() {
	c.reading.Go(c.follow)
	c.reading.Go(c.listen)
	c.reading.Go(c.stopped)
	c.reading.Go(func() {
		for sched.For(c.life, time.Second) {
			c.look()
		}
	})
}

// listen hears launchers.
func (c *Client) listen() {
	for e, err := range c.bus.Follow(c.life, aliveKind+".*.*", FollowOptions{}) {
		if err != nil {
			return // as what follows does, and says
		}
		_, rest, _ := strings.Cut(e.Subject, ".")
		name, launcher, _ := strings.Cut(rest, ".")
		c.mu.Lock()
		p := c.pools[name]
		back := p != nil && p.missed
		if p != nil {
			p.heard, p.missed = time.Now(), false // the clock of the hub may be wrong
		}
		c.mu.Unlock()
		if back {
			c.people.Notice(fmt.Sprintf("launcher %s of pool %s is alive", launcher, name))
		}
	}
}

// stopped says who else has stopped the job. The run goes on to ask launchers for the other hosts,
// who answer that they do not start.
func (c *Client) stopped() {
	for e, err := range c.bus.Follow(c.life, allOf(stopKind, c.ID), FollowOptions{}) {
		if err != nil {
			return
		}
		var s Stop
		_ = json.Unmarshal(e.Data, &s) // whoever it was
		c.mu.Lock()
		known := c.stopping != nil
		if !known {
			c.stopping, c.stoppedAt = &s, time.Now()
		}
		c.mu.Unlock()
		if !known {
			c.people.Notice(fmt.Sprintf("%s has stopped the job", cmp.Or(s.By, "somebody")))
		}
	}
}

// look says which pools have no launcher. Hosts of a job that was stopped are not started then.
func (c *Client) look() {
	var texts []string
	c.mu.Lock()
	for name, p := range c.pools {
		limit, since := missingFirst, p.offered
		if !p.heard.IsZero() {
			limit, since = missing, p.heard
		}
		if p.left == 0 || time.Since(since) < limit {
			continue
		}
		if !p.missed && c.stopping == nil {
			texts = append(texts, fmt.Sprintf("no launcher of pool %s is alive to run %s: sshpace work --pool %[1]s", name, unit.Count(p.left, "host")))
		}
		p.missed = true
	}
	stopped, since := c.stopping, c.stoppedAt
	c.mu.Unlock()
	for _, text := range texts {
		c.people.Notice(text)
	}
	if stopped != nil && time.Since(since) > missingFirst {
		c.abandon(stopped.Why)
	}
}

// abandon ends the hosts that no launcher starts any more: none has been heard of for as long as
// the hub remembers, and the next one reads first that the job is stopped. Who only looks does not
// know which batches were offered.
func (c *Client) abandon(why string) {
	for _, p := range c.pools {
		c.mu.Lock()
		nobody := p.missed && p.heard.IsZero() || c.Looks
		c.mu.Unlock()
		for _, b := range p.batches {
			c.mu.Lock()
			waits := nobody && b.offered && !b.begun
			c.mu.Unlock()
			for at := range b.members {
				if waits {
					b.close(at, &fleet.Outcome{Exit: -1, Class: fleet.Cancelled, Err: why})
				}
			}
		}
	}
}

// stop stops the job at a level, of the numbers of stop entries.
func (c *Client) stop(why string, level int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left.Err() != nil || c.Looks || level <= c.level {
		return
	}
	s := Stop{By: c.people.By, Why: why}
	c.stopping, c.stoppedAt, c.level, c.ending = &s, time.Now(), level, true
	c.changed.Broadcast()
	c.writing.Go(func() {
		if err := s.put(c.life, c.bus, c.ID, slices.Collect(maps.Keys(c.pools)), level); err != nil {
			c.people.Notice(fmt.Sprintf("the hub does not know that the job is stopped: %s", err))
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.stoppedAt = time.Now().Add(-missingFirst)
	})
}

// put stops a job of pools.
func (s Stop) put(ctx context.Context, bus Bus, id string, pools []string, level int) (err error) {
	data, err := json.Marshal(s)
	for _, pool := range pools {
		err = errors.Join(err, bus.Put(ctx, Entry{Subject: subject(stopKind, pool, id, level), Data: data}))
	}
	return err
}

// Leave makes all hosts end here while the job goes on.
func (c *Client) Leave(cause error) {
	c.leave(cause)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	c.changed.Broadcast()
}

// Left returns why the job goes on without this client, nil if it does not.
func (c *Client) Left() error { return context.Cause(c.left) }

// parting is how long Close waits for a hub that is away.
const parting = 2 * time.Second

// Close ends what follows the job, once the hub knows that it was stopped, if it was.
func (c *Client) Close() {
	known := make(chan struct{})
	go func() {
		c.writing.Wait()
		close(known)
	}()
	select {
	case <-known:
	case <-time.After(parting):
	}
	c.Leave(ErrLeft)
	c.end()
	c.reading.Wait()
	<-known
}

// Sink shows and records the run. A job that is left ends in neither.
func (c *Client) Sink(view, record fleet.Sink) fleet.Sink {
	return &clientSink{Tee: output.Tee{view, record}, client: c, view: view}
}

type clientSink struct {
	output.Tee
	client *Client
	view   fleet.Sink
	so     fleet.Summary
}

// Done passes on the end of a host, and stops the job with the run.
func (s *clientSink) Done(r fleet.Result, so fleet.Summary) error {
	if s.client.Left() != nil {
		return nil
	}
	s.so = so
	s.stop(so)
	return s.Tee.Done(r, so)
}

// End ends the view. The record of a job that was left has no end.
func (s *clientSink) End(so fleet.Summary) error {
	if s.client.Left() != nil {
		return s.view.End(s.so)
	}
	s.stop(so)
	return s.Tee.End(so)
}

func (s *clientSink) stop(so fleet.Summary) {
	if so.Stopped != "" {
		s.client.stop(so.Stopped, stopStarting)
	}
}
