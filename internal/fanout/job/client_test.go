package job_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sshpace/internal/base/host"
	"sshpace/internal/fanout"
	"sshpace/internal/fanout/hub"
	"sshpace/internal/fanout/job"
	"sshpace/internal/fleet"
	"sshpace/internal/fleet/output"
)

// office is a hub with a job for two pools, and what a client has said.
type office struct {
	t      *testing.T
	hub    job.Server
	client *job.Client
	mu     sync.Mutex
	said   []string
}

func newOffice(t *testing.T) *office {
	s, err := hub.NATS{}.Serve(t.Context(), job.Serving{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return &office{t: t, hub: s}
}

func (o *office) bus(r job.Role) job.Bus {
	b, err := o.hub.Bus(o.t.Context(), r)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(b.Close)
	return b
}

// check reports an error of a launcher, unless the test is over.
func (o *office) check(err error) {
	if err != nil && o.t.Context().Err() == nil {
		o.t.Error(err)
	}
}

func (o *office) people() job.People {
	return job.People{By: "alice", Notice: func(text string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.said = append(o.said, text)
	}}
}

func (o *office) notices() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.said, "\n")
}

const jobID = "20261127T100000Z.5-abc234"

// publish publishes a job for hosts such as a1 of pool a.
func (o *office) publish(p fanout.Pace, names ...string) {
	hosts := hostsOf(o.t, names)
	plan := job.Plan{
		Spec: job.Spec{ID: jobID, Line: "uptime"}, Hosts: hosts, Sizes: p.Sizes(len(hosts)), Expires: time.Hour,
		Pool: func(h host.Host) string { return h.Name[:1] },
		Sign: func(context.Context, []byte) ([]byte, error) { return []byte("signature"), nil },
	}
	var err error
	if o.client, err = job.Publish(o.t.Context(), o.bus(job.RoleClient), plan, o.people()); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(o.client.Close)
}

func (o *office) attach() {
	var err error
	if o.client, _, err = job.Attach(o.t.Context(), o.bus(job.RoleClient), jobID, false, o.people()); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(o.client.Close)
}

func hostsOf(t *testing.T, names []string) (hosts []host.Host) {
	for _, name := range names {
		h, err := host.Parse(name)
		if err != nil {
			t.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	return hosts
}

// seen is what a run shows.
type seen struct {
	fleet.Nothing
	fails   error // of output
	text    map[string]string
	times   []time.Time
	results map[string]fleet.Result
	order   []string
	ended   bool
}

func (s *seen) Started(index int) error { s.order = append(s.order, "start"); return nil }
func (s *seen) Output(e fleet.Event) error {
	s.text[e.Host] += string(e.Data)
	s.times = append(s.times, e.Time)
	return s.fails
}
func (s *seen) Done(r fleet.Result, _ fleet.Summary) error {
	s.results[r.Host.String()] = r
	s.order = append(s.order, r.Host.String())
	return nil
}
func (s *seen) End(fleet.Summary) error { s.ended = true; return nil }

// run runs the job.
func (o *office) run(ctx context.Context, p fanout.Pace) (*seen, fleet.Summary) {
	s, record := &seen{text: map[string]string{}, results: map[string]fleet.Result{}}, &seen{text: map[string]string{}, results: map[string]fleet.Result{}}
	p.Begun = o.client.Begun
	params := fanout.Params{Pace: p, Drain: ctx, RetryFor: -1, Resources: &fanout.Resources{}}
	so, err := fanout.Run(o.t.Context(), params, o.client.Hosts, fleet.Command{}, o.client, o.client.Sink(s, record))
	if err != nil && ctx.Err() == nil {
		o.t.Error(err)
	}
	if left := o.client.Left() != nil; record.ended == left {
		o.t.Errorf("the record has an end: %v", record.ended)
	}
	return s, so
}

// clerk is a launcher without ssh: it does what do says for each batch that it takes.
type clerk struct {
	o     *office
	bus   job.Bus
	pool  string
	owner string
	seq   uint64
	state job.State
	lines bytes.Buffer
	sink  *output.JSON
	hosts []host.Host
	batch int
}

// serve takes batches of a pool until the test ends.
func (o *office) serve(pool string, do func(c *clerk)) {
	bus := o.bus(job.LauncherRole(pool))
	if err := bus.Put(o.t.Context(), job.Entry{Subject: "alive." + pool + ".east"}); err != nil {
		o.t.Fatal(err)
	}
	go func() {
		for {
			w, err := bus.Take(o.t.Context(), pool, time.Minute)
			if err != nil {
				return
			}
			_, id, batch, _ := job.Parts(w.Subject())
			specs, err := job.SpecsOf(o.t.Context(), o.bus(job.RoleClient), id)
			if err != nil {
				o.t.Error(err)
				return
			}
			c := &clerk{o: o, bus: bus, pool: pool, owner: "east/1", batch: batch}
			c.hosts, _ = specs[pool].Hosts(batch)
			if last, err := bus.Last(o.t.Context(), job.Subject("event", pool, jobID, batch)); err == nil {
				c.seq = last.Seq
			}
			c.sink = output.NewRecord(&c.lines, output.How{})
			c.sink.Begin(fleet.Start{Time: time.Now(), Hosts: c.hosts})
			do(c)
			o.check(w.Done(o.t.Context()))
		}
	}()
}

// append appends what was written.
func (c *clerk) append() {
	c.state.Owner = c.owner
	var err error
	subject := job.Subject("event", c.pool, jobID, c.batch)
	c.seq, err = c.bus.Append(c.o.t.Context(), job.Entry{Subject: subject, Header: c.state.Header(), Data: c.lines.Bytes()}, c.seq, fmt.Sprint(c.owner, subject, c.seq))
	c.o.check(err)
	c.lines.Reset()
}

var began = time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)

func (c *clerk) start(at int) {
	c.state.Started.Add(at)
	c.sink.Started(at)
}

func (c *clerk) say(at int, text string) {
	c.sink.Output(fleet.Event{Index: at, Host: c.hosts[at].String(), Data: []byte(text), Time: began})
}

func (c *clerk) end(at, exit int) {
	r := fleet.Result{Index: at, Host: c.hosts[at], Outcome: fleet.Outcome{Ran: fleet.RanYes, Exit: exit}, Phase: fleet.PhaseExit, Attempts: 2, Start: began, Elapsed: 3 * time.Second, Waited: time.Second}
	r.Spent[fleet.PhaseExec] = time.Second
	c.done(r)
}

func (c *clerk) done(r fleet.Result) {
	c.state.Ended.Add(r.Index)
	c.sink.Done(r, fleet.Summary{})
}

// obey runs each host: it says its name, and ends with 1 if that ends in 9.
func obey(c *clerk) {
	for at, h := range c.hosts {
		c.start(at)
		c.append()
		c.say(at, h.Name+"\npart")
		c.append()
		c.end(at, len(h.Name)-len(strings.TrimSuffix(h.Name, "9")))
	}
	c.append()
}

// A run over two launchers shows what they have measured, and each host once.
func TestClient(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.publish(fanout.Pace{}, "a1", "root@b1:22", "a9", "b2")
	o.serve("a", obey)
	o.serve("b", obey)
	s, so := o.run(t.Context(), fanout.Pace{})
	if so.OK != 3 || so.Failed != 1 || len(s.results) != 4 || strings.Count(strings.Join(s.order, " "), "start") != 4 {
		t.Errorf("%+v %+v", so, s)
	}
	r := s.results["a9"]
	if r.Exit != 1 || r.Launcher != "east" || r.Attempts != 2 || !r.Start.Equal(began) || r.Elapsed != 3*time.Second || r.Waited != time.Second ||
		r.Spent[fleet.PhaseExec] != time.Second || r.OutBytes != 7 || s.text["a9"] != "a9\npart" {
		t.Errorf("%+v %q", r, s.text)
	}
	if slices.ContainsFunc(s.times, func(at time.Time) bool { return !at.Equal(began) && !at.Equal(began.Add(3*time.Second)) }) {
		t.Errorf("times %v", s.times)
	}
}

// Parts of the pace follow each other over all launchers; a failed canary stops all.
func TestClientPace(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pace   fanout.Pace
		names  string
		failed int
		not    int
	}{
		{fanout.Pace{Canary: 2}, "a9 b1 a1 b2", 1, 2},
		{fanout.Pace{Canary: 2}, "a2 b1 a1 b9", 1, 0},
		{fanout.Pace{Batches: fanout.Shares{{Count: 2}}, MaxFail: fanout.Shares{{Count: 1}}}, "a9 b9 a1 b1 a2", 2, 3},
	} {
		o := newOffice(t)
		names := strings.Fields(test.names)
		o.publish(test.pace, names...)
		var mu sync.Mutex
		var taken []string
		note := func(c *clerk) {
			mu.Lock()
			for _, h := range c.hosts {
				taken = append(taken, h.Name)
			}
			mu.Unlock()
			obey(c)
		}
		o.serve("a", note)
		o.serve("b", note)
		_, so := o.run(t.Context(), test.pace)
		if so.Failed != test.failed || so.NotStarted != test.not || len(taken) != len(names)-test.not {
			t.Errorf("%+v: %+v, taken %v", test, so, taken)
		}
		o.client.Close()
		_, err := o.bus(job.RoleClient).Last(t.Context(), job.Subject("stop", "a", jobID, 0))
		if stopped := err == nil; stopped != (test.not > 0) {
			t.Errorf("%+v: the hub knows of a stop: %v", test, err)
		}
	}
}

// A client that returns gets all that has happened, in order, and goes on.
func TestAttach(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	pace := fanout.Pace{Canary: 1, Pause: time.Hour}
	o.publish(pace, "b1", "a1", "b2", "a2")
	o.serve("b", obey)
	o.serve("a", obey)
	first := o.client
	go func() {
		for o.client.Left() == nil {
			time.Sleep(10 * time.Millisecond)
			if _, err := o.bus(job.RoleClient).Last(t.Context(), job.Subject("event", "b", jobID, 0)); err == nil {
				first.Leave(errors.New("killed"))
			}
		}
	}()
	drain, cancel := context.WithCancel(t.Context())
	context.AfterFunc(drain, func() {})
	go func() {
		for first.Left() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	o.run(drain, pace)
	o.attach()
	if o.client.Begun != 1 || !slices.Equal(o.client.Sizes, []int{1, 3}) {
		t.Errorf("begun %d of %v", o.client.Begun, o.client.Sizes)
	}
	pace.Pause = 0
	s, so := o.run(t.Context(), pace)
	if so.OK != 4 || s.order[1] != "b1" {
		t.Errorf("%+v %v", so, s.order)
	}
	o.attach()
	pace.Pause = time.Hour // which is over
	if s, so := o.run(t.Context(), pace); so.OK != 4 || s.text["a2"] != "a2\npart" {
		t.Errorf("%+v %v", so, s.text)
	}
}

// An interrupt stops the job; hosts that no launcher starts are not started.
func TestClientStops(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.publish(fanout.Pace{}, "a1", "a2", "b1")
	drain, cancel := context.WithCancelCause(t.Context())
	o.serve("a", func(c *clerk) {
		c.start(0)
		c.append()
		for !strings.Contains(o.notices(), "no launcher of pool b is alive to run 1 host") {
			time.Sleep(10 * time.Millisecond)
		}
		cancel(errors.New("interrupted"))
		for {
			if _, err := o.bus(job.RoleClient).Last(t.Context(), job.Subject("stop", "a", jobID, 1)); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		c.end(0, 1)
		c.done(fleet.Result{Index: 1, Host: c.hosts[1], Outcome: fleet.Outcome{Exit: -1, Class: fleet.Cancelled, Err: "stopped"}})
		c.append()
	})
	_, so := o.run(drain, fanout.Pace{})
	if so.Failed != 1 || so.NotStarted != 2 {
		t.Errorf("%+v", so)
	}
	if text := o.notices(); strings.Contains(text, "pool a") {
		t.Error(text)
	}
}

// What a launcher writes is its own word: about hosts that it was given, the first time.
func TestLiar(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.publish(fanout.Pace{Canary: 1}, "a1", "a2", "a3", "a4", "a5", "b1")
	o.serve("b", obey)
	o.serve("a", func(c *clerk) {
		if len(c.hosts) > 1 {
			c.lines.Reset() // no beginning
			c.end(0, 0)     // without a start
			c.end(0, 7)
			c.say(0, "late\n")
			fmt.Fprintln(&c.lines, `{"type":"result","schema":"sshpace.run/1","host":"b1","status":"failed"}`)
			fmt.Fprintln(&c.lines, "garbage\x1b[2J")
			fmt.Fprintln(&c.lines, `{"type":"result","schema":"sshpace.run/1","host":"a3","class":"nonsense"}`)
			c.state.Ended.Add(1)
			c.state.Ended.Add(700)
			c.end(2, 0)
			c.end(3, 0)
			c.append()
			return
		}
		for _, wrong := range []string{job.Subject("event", "a", jobID, 1), job.Subject("event", "a", jobID, 99), job.Subject("event", "a", jobID, -1)} {
			_, err := c.bus.Append(t.Context(), job.Entry{Subject: wrong, Header: map[string]string{"Owner": "east/1", "Ended": "//8"}}, 0, wrong)
			o.check(err)
		}
		obey(c)
	})
	drain, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	s, so := o.run(drain, fanout.Pace{Canary: 1})
	if so.OK != 5 || so.Failed != 1 || s.results["a2"].Exit != 0 || s.text["a2"] != "" || s.results["a3"].Ran != fleet.RanUnknown || s.results["a3"].Launcher != "east" {
		t.Errorf("%+v %+v %q", so, s.results, s.text)
	}
	if text := o.notices(); strings.Count(text, "launcher east of pool a") != 1 || strings.Contains(text, "\x1b") {
		t.Error(text)
	}
}

// Who only looks offers nothing, stops nothing, and sees each end, in whatever order.
func TestClientLooks(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	pace := fanout.Pace{Canary: 1}
	o.publish(pace, "a1", "b1", "a9")
	people := o.people()
	second, spec, err := job.Attach(t.Context(), o.bus(job.RoleClient), jobID, true, people)
	if err != nil || spec.Line != "uptime" {
		t.Fatal(spec, err)
	}
	t.Cleanup(second.Close)
	looked := make(chan fleet.Summary)
	go func() {
		other := &office{t: t, hub: o.hub, client: second}
		_, so := other.run(t.Context(), fanout.Pace{})
		looked <- so
	}()
	time.Sleep(300 * time.Millisecond)
	if _, err := o.bus(job.RoleClient).Last(t.Context(), job.Subject("batch", "b", jobID, 0)); err == nil {
		t.Error("a batch was offered")
	}
	o.serve("a", obey)
	o.serve("b", obey)
	if _, so := o.run(t.Context(), pace); so.OK != 2 || so.Failed != 1 {
		t.Errorf("%+v", so)
	}
	if so := <-looked; so.OK != 2 || so.Failed != 1 {
		t.Errorf("looked at: %+v", so)
	}
	if err := job.StopJob(t.Context(), o.bus(job.RoleClient), "nosuch", true, "x"); err == nil || !strings.Contains(err.Error(), "has no job nosuch") {
		t.Error(err)
	}
}

// A job that somebody else stops ends for all who look at it.
func TestStopJob(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.publish(fanout.Pace{}, "a1", "b1")
	go func() {
		time.Sleep(100 * time.Millisecond)
		o.check(job.StopJob(t.Context(), o.bus(job.RoleClient), jobID, true, "bob@x"))
	}()
	if _, so := o.run(t.Context(), fanout.Pace{}); so.NotStarted != 2 {
		t.Errorf("%+v", so)
	}
	if text := o.notices(); !strings.Contains(text, "bob@x has stopped the job") {
		t.Error(text)
	}
}

// A reader that leaves ends a run and its commands; of a job that was attached it leaves the view.
func TestReaderLeaves(t *testing.T) {
	t.Parallel()
	for _, attached := range []bool{true, false} {
		o := newOffice(t)
		o.publish(fanout.Pace{}, "a1", "a2")
		if attached {
			o.attach()
		}
		over := make(chan struct{})
		o.serve("a", func(c *clerk) {
			for at := range c.hosts {
				c.start(at)
				c.say(at, "hello\n")
			}
			c.append()
			<-over
		})
		drain, stopped := context.WithCancel(t.Context())
		go func() { // the launcher ends what was stopped
			for drain.Err() == nil {
				time.Sleep(10 * time.Millisecond)
				if _, err := o.bus(job.RoleClient).Last(t.Context(), job.Subject("stop", "a", jobID, 1)); err == nil {
					o.client.Leave(job.ErrLeft)
				}
			}
		}()
		view := &seen{text: map[string]string{}, results: map[string]fleet.Result{}, fails: syscall.EPIPE}
		_, err := fanout.Run(t.Context(), fanout.Params{RetryFor: -1, Resources: &fanout.Resources{}}, o.client.Hosts, fleet.Command{}, o.client, o.client.Sink(view, fleet.Nothing{}))
		if !errors.Is(err, syscall.EPIPE) || o.client.Left() == nil {
			t.Errorf("%v, left: %v", err, o.client.Left())
		}
		o.client.Close()
		if _, err := o.bus(job.RoleClient).Last(t.Context(), job.Subject("stop", "a", jobID, 1)); (err == nil) == attached {
			t.Errorf("attached: %v; stopped: %v", attached, err)
		}
		stopped()
		close(over)
	}
}

// refusing is a hub that does not take the first offer.
type refusing struct {
	job.Bus
	once sync.Once
}

func (r *refusing) Put(ctx context.Context, e job.Entry) (err error) {
	if r.once.Do(func() { err = job.ErrFull }); err != nil {
		return err
	}
	return r.Bus.Put(ctx, e)
}

// A hub that is full is asked again, and people know.
func TestOfferAgain(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	o.publish(fanout.Pace{}, "a1")
	client, _, err := job.Attach(t.Context(), &refusing{Bus: o.bus(job.RoleClient)}, jobID, false, o.people())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	o.client = client
	o.serve("a", obey)
	if _, so := o.run(t.Context(), fanout.Pace{}); so.OK != 1 || !strings.Contains(o.notices(), "the hub: it does not take a batch of pool a: the hub is full") {
		t.Errorf("%+v %s", so, o.notices())
	}
}
