package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/measure/model"
	"sshpace/internal/record"
)

// Ending is why a plan ended; "" while it has not.
type Ending string

// The endings.
const (
	EndBudget      Ending = "budget"      // the measuring time is spent
	EndPrecision   Ending = "precision"   // every interval is as narrow as asked
	EndComplete    Ending = "complete"    // every planned trial is done
	EndFailures    Ending = "failures"    // too many trials failed in a row
	EndInterrupted Ending = "interrupted" // the user stopped it
)

// Record keeps the ending in a file.
func (e Ending) Record() record.Record { return record.Record{End: &record.End{Why: string(e)}} }

// Limits that make every plan end.
const (
	maxAttempts = 3  // failures of one trial in a block, and of a cell that never worked
	maxStart    = 8  // failures before anything worked
	maxInARow   = 24 // failures in a row
	maxEmpty    = 2  // blocks in a row of nothing but cells that were given up
)

// designer draws the blocks of a plan.
type designer interface {
	// block returns the trials of block n, from 1, in their order. left is the
	// measuring time that is left, negative if there is no limit. None: the plan is
	// complete, for the reason that ending gives.
	block(n int, left time.Duration) ([]record.Trial, Ending)
	// observe sees every sample that says something about its cell.
	observe(t record.Trial, s record.Sample)
	// progress adds what only the designer knows.
	progress(p *Progress)
}

// Plan is a queue of trials that a designer fills block by block. It retries
// what failed at the end of the block, a bounded number of times.
type Plan struct {
	spec    Spec
	design  designer
	n       int            // current block
	pending []record.Trial // of the current block
	tries   map[record.Trial]int
	cells   map[cellKey]*history
	total   int  // distinct cells
	asked   bool // Next was called: what is observed now is not replayed
	inARow  int  // failures since the last success
	worked  bool
	elapsed time.Duration
	last    record.Trial // observed since the last Next, if lastOK
	lastOK  bool
	times   *trialTimes
	ending  Ending
}

// cellKey names what a trial measures, however it is asked for.
type cellKey struct {
	workload  record.Workload
	want      alg.Suite
	direction record.Direction
}

type history struct{ ok, failed int }

func keyOf(t record.Trial) cellKey { return cellKey{t.Workload, t.Want, t.Direction} }

func newPlan(spec Spec, d designer, total int, times *trialTimes) *Plan {
	return &Plan{
		spec: spec, design: d, total: total, times: times,
		tries: map[record.Trial]int{}, cells: map[cellKey]*history{},
	}
}

// Next returns the next trial, or false when the plan has ended. It returns
// the same trial until Observe has seen its sample. elapsed is the measuring
// time so far.
func (p *Plan) Next(elapsed time.Duration) (record.Trial, bool) {
	if p.lastOK {
		p.times.observe(p.last, elapsed-p.elapsed) // what it took with everything around it
		p.lastOK = false
	}
	p.elapsed, p.asked = elapsed, true
	for empty := 0; p.ending == "" && len(p.pending) == 0; empty++ {
		left := time.Duration(-1)
		if p.spec.Budget > 0 {
			left = p.spec.Budget - elapsed
		}
		trials, ending := p.design.block(p.n+1, left)
		if len(trials) == 0 || empty == maxEmpty {
			p.end(cmp.Or(ending, EndComplete))
			break
		}
		p.open(p.n+1, trials)
	}
	if p.ending == "" && p.overBudget() {
		p.end(EndBudget)
	}
	if p.ending != "" {
		return record.Trial{}, false
	}
	return p.pending[0], true
}

// end ends the plan. One that has no result to show did not end well.
func (p *Plan) end(why Ending) {
	if _, barren := p.Barren(); barren {
		why = EndFailures
	}
	p.ending = why
}

// Barren names a workload that was tried and never worked, whatever was
// measured.
func (p *Plan) Barren() (w record.Workload, barren bool) {
	tried, worked := map[record.Workload]bool{}, map[record.Workload]bool{}
	for key, h := range p.cells {
		if p.isCell(key) {
			tried[key.workload] = true
			worked[key.workload] = worked[key.workload] || h.ok > 0
		}
	}
	for _, w := range []record.Workload{record.Transfer, record.Login, record.Copy} {
		if tried[w] && !worked[w] {
			return w, true
		}
	}
	return "", false
}

// isCell tells what is to be ranked from a copy that only shows an overhead.
func (p *Plan) isCell(key cellKey) bool { return key.workload != record.Copy || p.spec.SizeBytes > 0 }

// overBudget reports whether most of the next trial would lie after the end.
func (p *Plan) overBudget() bool {
	return p.spec.Budget > 0 && p.elapsed+p.times.of(p.pending[0])/2 > p.spec.Budget
}

// open starts a block; cells that never worked are left out of it.
func (p *Plan) open(n int, trials []record.Trial) {
	p.n = n
	clear(p.tries)
	p.pending = slices.DeleteFunc(trials, func(t record.Trial) bool { return p.dead(keyOf(t)) })
	for i := range p.pending {
		p.pending[i].Block = n
	}
}

// dead reports whether a cell failed so often, without a success, that it is
// given up.
func (p *Plan) dead(key cellKey) bool {
	h := p.cells[key]
	return h != nil && h.ok == 0 && h.failed >= maxAttempts
}

// Observe tells the plan what a trial showed. Trials that are replayed from a
// file are ticked off, so that they are not measured again. Failures are not:
// what was in the way then may be gone now.
func (p *Plan) Observe(t record.Trial, s record.Sample) {
	t.ID, t.Target = 0, ""
	for p.n < t.Block {
		trials, _ := p.design.block(p.n+1, -1)
		p.open(p.n+1, trials)
	}
	i := slices.Index(p.pending, t)
	if i >= 0 {
		p.pending = slices.Delete(p.pending, i, i+1)
	}
	usable := model.Usable(t, s)
	switch {
	case s.Outcome == record.Aborted, !usable && !p.asked:
		p.requeue(t, i)
		return
	case unconnected(s):
		p.inARow++
		p.endIfHopeless(maxStart)
		p.requeue(t, i)
		return
	}
	p.design.observe(t, s)
	h := p.cells[keyOf(t)]
	if h == nil {
		h = &history{}
		p.cells[keyOf(t)] = h
	}
	if usable {
		h.ok++
		p.inARow, p.worked = 0, true
		p.last, p.lastOK = t, p.elapsed > 0 && i >= 0
		return
	}
	h.failed++
	p.fail(t, i)
}

// unconnected reports whether a trial ended before any algorithm was
// negotiated: servers that limit connections refuse some at random
// (sshd_config(5) MaxStartups), whatever they would have offered.
func unconnected(s record.Sample) bool {
	return s.Outcome == record.Refused || s.Outcome == record.TimedOut && s.Got == (alg.Suite{})
}

// endIfHopeless ends the plan after too many failures in a row; atStart is how
// many they may be before anything worked.
func (p *Plan) endIfHopeless(atStart int) {
	if p.inARow >= maxInARow || !p.worked && p.inARow >= atStart {
		p.ending = EndFailures
	}
}

// fail retries a trial at the end of its block, or gives its cell up.
func (p *Plan) fail(t record.Trial, index int) {
	p.inARow++
	p.tries[t]++
	p.endIfHopeless(min(maxStart, maxAttempts*p.total))
	switch {
	case p.dead(keyOf(t)):
		p.pending = slices.DeleteFunc(p.pending, func(o record.Trial) bool { return keyOf(o) == keyOf(t) })
	case p.tries[t] < maxAttempts:
		p.requeue(t, index)
	}
}

// requeue puts a trial that stood in the queue at its end.
func (p *Plan) requeue(t record.Trial, index int) {
	if index >= 0 {
		p.pending = append(p.pending, t)
	}
}

// End is why the plan ended; "" while it has not, or if it was interrupted.
func (p *Plan) End() Ending { return p.ending }

// Failed lists the cells that were given up or never worked, in no order.
func (p *Plan) Failed() []record.Trial {
	var failed []record.Trial
	for key, h := range p.cells {
		if h.ok == 0 && h.failed > 0 {
			failed = append(failed, record.Trial{Want: key.want, Workload: key.workload, Direction: key.direction})
		}
	}
	return failed
}

// Progress says how far a plan is, for a live view.
type Progress struct {
	Phase     string        // what is being done, in two or three words
	Block     int           // current block, from 1
	Done      int           // cells that have a result
	Total     int           // cells
	Failed    int           // cells that never worked
	Remaining time.Duration // estimated measuring time
	Ranked    bool          // every cell is measured or predicted: a ranking would be complete
	Leaders   []Leader      // fastest cells so far, best first; may be empty
}

// Leader is one of the fastest cells so far.
type Leader struct {
	Cell       alg.Suite
	Direction  record.Direction
	Throughput float64 // bytes per second; 0: unknown
	CostNS     float64 // client CPU time in ns per byte; 0: unknown
	Predicted  bool    // not measured itself yet
}

// Progress reports the state after the last Observe.
func (p *Plan) Progress() Progress {
	out := Progress{Block: p.n, Total: p.total}
	for key, h := range p.cells {
		switch {
		case !p.isCell(key):
		case h.ok > 0:
			out.Done++
		case h.failed >= maxAttempts:
			out.Failed++
		}
	}
	out.Remaining = p.times.sum(p.pending)
	p.design.progress(&out)
	if p.spec.Budget > 0 {
		out.Remaining = min(max(0, p.spec.Budget-p.elapsed), out.Remaining)
	}
	return out
}

// trialTimes learns how long trials take.
type trialTimes struct {
	transfer, login time.Duration
	copyRate        float64 // bytes per second
}

func newTimes(s Spec) *trialTimes {
	return &trialTimes{transfer: s.TransferNS, login: s.LoginNS, copyRate: defaultCopyRate}
}

// smoothing is the weight of the newest trial in the learnt times.
const smoothing = 0.15

func (l *trialTimes) observe(t record.Trial, elapsed time.Duration) {
	if elapsed <= 0 {
		return
	}
	switch t.Workload {
	case record.Transfer:
		l.transfer += time.Duration(smoothing * float64(elapsed-l.transfer))
	case record.Login:
		l.login += time.Duration(smoothing * float64(elapsed-l.login))
	case record.Copy:
		rate := float64(t.SizeBytes) / elapsed.Seconds()
		l.copyRate += smoothing * (rate - l.copyRate)
	}
}

// of estimates how long a trial takes.
func (l *trialTimes) of(t record.Trial) time.Duration {
	switch t.Workload {
	case record.Login:
		return l.login
	case record.Copy:
		return saturated(float64(l.login) + float64(t.SizeBytes)/max(1, l.copyRate)*1e9)
	}
	return l.transfer
}

// saturated is a time of so many nanoseconds, or the longest that there is.
func saturated(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}

// sum estimates how long trials take together.
func (l *trialTimes) sum(trials []record.Trial) time.Duration {
	total := 0.0
	for _, t := range trials {
		total += float64(l.of(t))
	}
	return saturated(total)
}

// repeated estimates how long trials take together n times, after a while.
func (l *trialTimes) repeated(after time.Duration, n int, trials []record.Trial) time.Duration {
	return saturated(float64(after) + float64(n)*float64(l.sum(trials)))
}
