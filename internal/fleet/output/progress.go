package output

import (
	"fmt"
	"sync"
	"time"

	"sshpace/internal/base/unit"
	"sshpace/internal/fleet"
	"sshpace/internal/sys/terminal"
)

// progress keeps a few lines at the bottom of a terminal up to date while another sink writes above
// them: the progress of the run, and the hosts that have run longest with their last lines. Use it
// only when w is a terminal.
type progress struct {
	sink  fleet.Sink // receives everything, while the line is erased
	view  *terminal.Screen
	total int
	start time.Time
	color bool
	width func() int // of the terminal, in columns
	stop  chan struct{}
	// naming is the number of names that are looked up; nil: unknown.
	naming func() int
	ended  sync.WaitGroup

	mu    sync.Mutex
	so    fleet.Summary
	retry int // hosts that wait to be tried again
	hosts running
}

var _ fleet.Sink = (*progress)(nil)

// redraw is the shortest interval between redraws: often enough for people, too rarely to disturb a
// measurement.
const redraw = 250 * time.Millisecond

// newProgress draws on a terminal, which is width columns wide, while everything is passed on to
// sink.
func newProgress(view *terminal.Screen, width func() int, color bool, sink fleet.Sink) *progress {
	return &progress{sink: sink, view: view, width: width, color: color, stop: make(chan struct{})}
}

// Begin begins to draw.
func (p *progress) Begin(s fleet.Start) error {
	p.total, p.start = len(s.Hosts), s.Time
	p.hosts.begin(s)
	p.ended.Go(p.tick)
	return p.sink.Begin(s)
}

func (p *progress) tick() {
	t := time.NewTicker(redraw)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.mu.Lock()
			p.draw()
			p.mu.Unlock()
		case <-p.stop:
			return
		}
	}
}

// End removes the line for good.
func (p *progress) End(so fleet.Summary) error {
	close(p.stop)
	p.ended.Wait()
	p.erase()
	return p.sink.End(so)
}

// Batch passes on, while the line is erased.
func (p *progress) Batch(b fleet.Batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	return p.sink.Batch(b)
}

// Started counts a host as running, and tells the sink.
func (p *progress) Started(index int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts.started(index, time.Now())
	return p.sink.Started(index)
}

// Output passes on. Its text erases the lines, and they come back with the next tick.
func (p *progress) Output(e fleet.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hosts.said(e)
	return p.sink.Output(e)
}

// Done counts the hosts that have ended and passes on.
func (p *progress) Done(r fleet.Result, so fleet.Summary) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.so = so
	delete(p.hosts.hosts, r.Index)
	return p.sink.Done(r, so)
}

// Waiting records how many hosts wait and passes on.
func (p *progress) Waiting(hosts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retry = hosts
	p.sink.Waiting(hosts)
}

// draw redraws the lines. Errors do not matter: the run does not depend on somebody watching.
func (p *progress) draw() {
	now := time.Now()
	_ = p.view.Draw(append([]string{p.text(now.Sub(p.start))}, p.hosts.lines(now, p.width())...)...)
}

// text has fewer than 80 columns, so that it does not wrap.
func (p *progress) text(elapsed time.Duration) string {
	text := SoFar(p.so, p.total, elapsed, p.color)
	if p.retry > 0 {
		return text + fmt.Sprintf(", retrying %d", p.retry)
	}
	if p.naming == nil {
		return text
	}
	if n := p.naming(); n > 0 {
		text += fmt.Sprintf(", looking up %s", unit.Count(n, "name"))
	}
	return text
}

// SoFar says how many hosts have ended how: "2 of 3 hosts, 4s, 1 failed".
func SoFar(so fleet.Summary, total int, elapsed time.Duration, color bool) string {
	text := fmt.Sprintf("%d of %d hosts, %s", so.Total(), total, elapsed.Round(time.Second))
	if so.Failed > 0 {
		text += terminal.Paint(color, "31", fmt.Sprintf(", %d failed", so.Failed))
	}
	if so.Unreachable > 0 {
		text += terminal.Paint(color, "33", fmt.Sprintf(", %d unreachable", so.Unreachable))
	}
	return text
}

func (p *progress) erase() { _ = p.view.Draw() }
