package drive

import (
	"context"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sshpace/internal/measure/flow"
	"sshpace/internal/record"
	"sshpace/internal/ssh/openssh"
	"sshpace/internal/sys/proc"
)

// sitting is what connections that are open together share.
type sitting struct {
	lines   map[int]*connection // by trial
	probes  map[int]*probe
	sizes   map[turn]int64
	payload *flow.Payload
	null    *os.File
}

// atOnce is how many logins go on side by side: they mostly wait for each other.
const atOnce = 8

// prepare makes what slices need.
func (p *Private) prepare() (err error) {
	if p.lines != nil {
		return nil
	}
	if p.payload, err = flow.NewPayload(p.Data == "random"); err != nil {
		return err
	}
	if p.null, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
		return err
	}
	p.lines, p.probes, p.sizes = map[int]*connection{}, map[int]*probe{}, map[turn]int64{}
	return nil
}

// opened is a connection of which the login has come to its end.
type opened struct {
	trial  record.Trial
	sample record.Sample
	c      *connection // nil if it failed
}

// Open opens the connections of trials, several at a time, and hands the sample
// of each on as soon as its login is over. It ends early with ctx, or when each
// fails.
func (p *Private) Open(ctx context.Context, trials []record.Trial, each func(record.Trial, record.Sample) error) error {
	if err := p.prepare(); err != nil {
		return err
	}
	p.Server.Fresh(true)
	results := make(chan opened)
	started, running := 0, 0
	var failed error
	for {
		for running < atOnce && started < len(trials) && ctx.Err() == nil && failed == nil {
			t := trials[started]
			started, running = started+1, running+1
			go func() { results <- p.enter(ctx, t) }()
		}
		if running == 0 {
			return failed
		}
		o := <-results
		running--
		if o.c != nil {
			p.lines[o.trial.ID] = o.c // until the lab says that it is not what was wanted
		}
		if o.sample.Outcome == record.Denied || o.sample.Outcome == record.HostKey {
			failed = &LoginError{o.sample.Detail}
		}
		if err := each(o.trial, o.sample); err != nil && failed == nil {
			failed = err
		}
	}
}

// enter opens one connection and checks what it negotiated.
func (p *Private) enter(ctx context.Context, t record.Trial) opened {
	o := opened{trial: t, sample: record.Sample{Trial: t.ID, Start: time.Now()}}
	c, err := p.dial(t)
	if err != nil {
		o.sample.Outcome, o.sample.Detail = record.Broken, err.Error()
		return o
	}
	err = p.await(ctx, c)
	if err == nil {
		c.used, err = c.read()
	}
	if err == nil {
		c.judge(&o.sample, openssh.ParseVerbose(c.log.Rest()), nil)
		o.c = c
		return o
	}
	c.linger(err)
	c.kill()
	c.finish(&o.sample, err)
	p.explain(&o.sample)
	c.close()
	return o
}

// Close ends the connections of trials, and says which of them exchanged keys
// again meanwhile. Probes end with the last one.
func (p *Private) Close(ids ...int) (rekeys map[int]int) {
	rekeys = map[int]int{}
	for _, id := range ids {
		if c := p.lines[id]; c != nil {
			c.kill()
			if n, _ := c.negotiation(); n.Rekeys > 0 {
				rekeys[id] = n.Rekeys
			}
			c.close()
			delete(p.lines, id)
		}
	}
	if len(p.lines) == 0 {
		p.endProbes()
	}
	return rekeys
}

// Shares of what the machine has that connections may use, and what each takes.
const (
	memoryShare   = 4        // a quarter of what is available
	perConnection = 26 << 20 // resident memory of ssh, its sshd processes and a shell
	filesEach     = 8        // descriptors of ours: pipes, clocks, standard error, and the socket while it logs in
	filesAside    = 24
)

// Capacity is how many connections can be open at a time.
func (p *Private) Capacity() int {
	n := maxOpen
	if available, ok := proc.AvailableMemory(); ok {
		n = min(n, int(available/memoryShare/perConnection))
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil && limit.Cur < 1<<20 {
		n = min(n, (int(limit.Cur)-filesAside)/filesEach)
	}
	return max(n, 1)
}

// maxOpen keeps the number of processes within reason.
const maxOpen = 400
