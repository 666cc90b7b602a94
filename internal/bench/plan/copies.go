package plan

import (
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/record"
)

// copies plans every combination of the offer literally, aliases and ignored MACs included, as
// copies of a fixed size, each round in a new random order: the slow way, to check the fast one
// against. A failed copy is tried again at the end of its round, a limited number of times.
type copies struct {
	design
	steps
	all     []record.Trial // of one round
	n       int            // current round
	pending []record.Trial // of the current round
	tries   map[record.Trial]int
	results map[copied]*tally
	made    int  // copies that worked
	asked   bool // Next was called: later observations are not replayed
}

// copied identifies the measurement of a copy, under any of its names.
type copied struct {
	want      alg.Suite
	direction record.Direction
}

type tally struct{ ok, failed int }

func resultOf(t record.Trial) copied { return copied{t.Want, t.Direction} }

func newCopies(d design) *copies {
	d.Rounds = max(1, d.Rounds)
	return &copies{design: d, all: combinations(d), tries: map[record.Trial]int{}, results: map[copied]*tally{}}
}

// combinations lists the naive matrix, once per direction.
func combinations(d design) []record.Trial {
	var all []record.Trial
	macs := d.Offer.MACs
	if len(macs) == 0 {
		macs = []string{""}
	}
	for _, direction := range d.Directions {
		for _, cipher := range d.Offer.Ciphers {
			for _, mac := range macs {
				for _, kex := range d.Offer.Kex {
					asked := alg.Suite{Cipher: cipher, MAC: mac, Kex: kex}
					t := record.Trial{Want: alg.NewSuite(cipher, mac, kex), Workload: record.Copy, Direction: direction, SizeBytes: d.SizeBytes}
					if t.Want != asked {
						t.Offered = asked
					}
					all = append(all, t)
				}
			}
		}
	}
	return all
}

// Next returns the next copy, or false when the plan has ended.
func (p *copies) Next(elapsed time.Duration, _ record.Slices) (Step, bool) {
	p.asked = true
	return p.next(elapsed, p.refill)
}

// refill decides the next copy, or why there is none.
func (p *copies) refill() {
	switch {
	case len(p.pending) > 0:
		p.queue = []Step{{Action: Single, Trials: []record.Trial{p.number(p.pending[0])}}}
	case p.more():
		p.open()
	default:
		p.ending = EndComplete
		if _, never := p.NeverWorked(); never { // without a result to show it failed
			p.ending = EndFailures
		}
	}
}

// more reports whether there is another round to come.
func (p *copies) more() bool { return p.n < p.Rounds }

// open starts a round; it leaves out copies that never worked.
func (p *copies) open() {
	p.n++
	clear(p.tries)
	p.pending = slices.DeleteFunc(sched.Shuffled(p.Seed, p.n, p.all), func(t record.Trial) bool { return p.dead(resultOf(t)) })
	for i := range p.pending {
		p.pending[i].Round = p.n
	}
}

// dead reports whether a copy failed so often, without a success, that it is given up.
func (p *copies) dead(key copied) bool {
	h := p.results[key]
	return h != nil && h.ok == 0 && h.failed >= maxAttempts
}

// NeverWorked reports whether copies were tried and none worked.
func (p *copies) NeverWorked() (what string, never bool) {
	for _, h := range p.results {
		if h.ok > 0 {
			return "", false
		}
	}
	return "copy", len(p.results) > 0
}

// Observe marks a copy as done. Failures in a file are not done: their cause may be gone now.
func (p *copies) Observe(t record.Trial, s record.Sample) {
	t.ID, t.Target = 0, ""
	for p.n < t.Round && p.more() { // a file is ahead
		p.open()
	}
	i := slices.Index(p.pending, t)
	if i >= 0 {
		p.pending = slices.Delete(p.pending, i, i+1)
	}
	usable := record.Result{Trial: t, Sample: s}.Usable()
	switch {
	case s.Outcome == record.Aborted, !usable && !p.asked:
		p.requeue(t, i)
		return
	case unconnected(s):
		p.fail(maxStart)
		p.requeue(t, i)
		return
	}
	h := p.results[resultOf(t)]
	if h == nil {
		h = &tally{}
		p.results[resultOf(t)] = h
	}
	if usable {
		h.ok++
		p.made++
		p.succeed()
		return
	}
	h.failed++
	p.again(t, i)
}

// again tries a copy that failed at the end of its round, or gives it up.
func (p *copies) again(t record.Trial, index int) {
	p.tries[t]++
	p.fail(min(maxStart, maxAttempts*len(p.all)))
	switch {
	case p.dead(resultOf(t)):
		p.pending = slices.DeleteFunc(p.pending, func(o record.Trial) bool { return resultOf(o) == resultOf(t) })
	case p.tries[t] < maxAttempts:
		p.requeue(t, index)
	}
}

// requeue moves a queued trial to the end of the queue.
func (p *copies) requeue(t record.Trial, index int) {
	if index >= 0 {
		p.pending = append(p.pending, t)
	}
}

// Opened, Moved and Lost belong to sittings.
func (p *copies) Opened(record.Trial, record.Sample) {}

// Moved does nothing.
func (p *copies) Moved(Step, record.Slice) {}

// Lost does nothing.
func (p *copies) Lost(record.Trial) {}

// Begin marks the copies of a file as done.
func (p *copies) Begin(f *record.File) {
	p.begin(f)
	for _, sample := range f.Samples {
		p.Observe(f.Trials[sample.Trial], sample)
	}
}

// Estimate returns the time of all copies.
func (p *copies) Estimate() time.Duration {
	return saturated(p.usual() * float64(len(p.all)) * float64(p.Rounds))
}

// usual returns the expected time of a copy before any was made, in ns.
func (p *copies) usual() float64 { return float64(usualLogin) + float64(p.SizeBytes)/usualRate*1e9 }

// usualRate is in bytes per second.
const usualRate = 200e6

// Progress reports the state after the last Observe.
func (p *copies) Progress() Progress {
	out := Progress{Phase: "every combination", Round: p.n, Total: len(p.all)}
	for _, h := range p.results {
		switch {
		case h.ok > 0:
			out.Done++
		case h.failed >= maxAttempts:
			out.Failed++
		}
	}
	each := p.usual()
	if p.made > 0 && p.elapsed > 0 {
		each = float64(p.elapsed) / float64(p.made)
	}
	out.Remaining = saturated(each * (float64(len(p.pending)) + float64(len(p.all))*float64(max(0, p.Rounds-p.n))))
	return out
}
