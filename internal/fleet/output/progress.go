package output

import (
	"fmt"
	"io"
	"sync"
	"time"

	"sshpace/internal/fleet"
)

// Progress keeps one line at the bottom of a terminal up to date while another
// sink writes above it. Use it only when w is a terminal.
type Progress struct {
	sink  fleet.Sink
	w     io.Writer
	total int
	start time.Time
	color bool
	stop  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	tally Tally
	retry int // hosts that wait to be tried again
	drawn bool
}

var _ fleet.Sink = (*Progress)(nil)

// redraw is how often the line changes at most: often enough for people, too
// rarely to disturb what is measured.
const redraw = 250 * time.Millisecond

// StartProgress draws on w, for total hosts, while everything is handed on to
// sink. Stop must be called.
func StartProgress(w io.Writer, total int, color bool, sink fleet.Sink) *Progress {
	p := &Progress{sink: sink, w: w, total: total, start: time.Now(), color: color, stop: make(chan struct{})}
	p.ended.Go(p.tick)
	return p
}

func (p *Progress) tick() {
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

// Stop removes the line. It must be called once, after the run.
func (p *Progress) Stop() {
	close(p.stop)
	p.ended.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

// Output hands on, with the line out of the way. It comes back with the next tick.
func (p *Progress) Output(e fleet.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	return p.sink.Output(e)
}

// Done counts and hands on.
func (p *Progress) Done(r fleet.Result) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.tally.Done(r) // cannot fail
	return p.sink.Done(r)
}

// Retrying says how many hosts wait to be tried again.
func (p *Progress) Retrying(hosts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retry = hosts
}

// draw writes the line anew. Errors do not matter: the run does not depend on
// somebody watching.
func (p *Progress) draw() {
	p.erase()
	io.WriteString(p.w, p.text(time.Since(p.start)))
	p.drawn = true
}

// text has fewer than 80 columns, so that it does not wrap.
func (p *Progress) text(elapsed time.Duration) string {
	c := p.tally.counts
	text := fmt.Sprintf("%d of %d hosts, %s", c.Total(), p.total, elapsed.Round(time.Second))
	if c.Failed > 0 {
		text += p.paint("31", fmt.Sprintf(", %d failed", c.Failed))
	}
	if c.Unreachable > 0 {
		text += p.paint("33", fmt.Sprintf(", %d unreachable", c.Unreachable))
	}
	if p.retry > 0 {
		text += fmt.Sprintf(", retrying %d", p.retry)
	}
	return text
}

func (p *Progress) paint(color, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func (p *Progress) erase() {
	if p.drawn {
		io.WriteString(p.w, "\r\x1b[K")
		p.drawn = false
	}
}
