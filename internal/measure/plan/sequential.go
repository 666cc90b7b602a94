package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/measure/model"
	"sshpace/internal/record"
)

// Sizes of the parts of a sequential plan.
const (
	blockTransfers   = 14 // of cells in a block after the first, references and controls apart
	holdoutTrials    = 3  // connections of a held-out cell, time permitting
	maxRepeats       = 3  // connections for a cell whose samples were all contaminated
	precisionBudget  = 10 * time.Minute
	maxTrialsPerCell = 60 // where precision alone would end the plan
)

// Sequential plans a ranking that is complete early and gets better until the
// budget or the precision is reached. The first block measures the cells that
// identify base, cipher and MAC, and logs in once with every key exchange. Later
// blocks measure every cell once, held-out ones only to check the predictions,
// and then those where another measurement changes most. Each block is shuffled
// and holds the reference cell, A/A controls and logins.
func Sequential(spec Spec) (*Plan, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	if spec.Budget == 0 {
		spec.Budget = defaultBudget
		if spec.Precision > 0 {
			spec.Budget = precisionBudget
		}
	}
	times := newTimes(spec)
	s := &sequential{spec: spec, times: times, seen: map[record.Cell]*seen{}, logins: map[string]int{}, refused: map[string]int{}, analyses: map[record.Direction]*model.Analysis{}}
	s.lay()
	return newPlan(spec, s, spec.cells(), times), nil
}

type sequential struct {
	spec      Spec
	times     *trialTimes
	names     map[alg.Suite]alg.Suite // canonical to offered
	cells     []alg.Suite             // canonical
	first     []alg.Suite             // offered names: the identifying cells
	held      []alg.Suite             // offered names: the held-out cells
	transfers []model.Transfer
	loginLogs map[string][]float64
	seen      map[record.Cell]*seen
	logins    map[string]int // usable ones, by offered name of the fold
	refused   map[string]int // logins that failed
	spins     []float64
	analyses  map[record.Direction]*model.Analysis
	fitted    int // transfers that the analyses know
	phase     string
}

// seen counts the trials of a cell.
type seen struct {
	tried int
	clean int // with segments that can be used
	quiet int // without other work on the cores
}

// observe keeps what a sample showed.
func (s *sequential) observe(t record.Trial, sample record.Sample) {
	if t.Workload == record.Transfer {
		count := s.count(t.Cell())
		count.tried++
		for _, segment := range sample.Segments {
			if segment.SpinNS > 0 {
				s.spins = append(s.spins, float64(segment.SpinNS))
			}
		}
		if transfer, ok := model.TransferOf(t, sample, stats.Median(s.spins)); ok {
			s.transfers = append(s.transfers, transfer)
			if !transfer.DirtyCost && (!transfer.DirtyWall || s.busy()) {
				count.clean++
			}
			if !transfer.Crowded {
				count.quiet++
			}
		}
		return
	}
	if t.Workload != record.Login {
		return
	}
	if model.Usable(t, sample) && sample.Phases != nil {
		s.logins[t.Want.Kex]++
		s.loginLogs[t.Want.Kex] = append(s.loginLogs[t.Want.Kex], math.Log(float64(sample.Phases.LoginNS)))
		return
	}
	s.refused[t.Want.Kex]++
}

// busy reports whether most transfers are disturbed, so that repeating them is
// no use.
func (s *sequential) busy() bool {
	recent := s.transfers[max(0, len(s.transfers)-20):]
	dirty := 0
	for _, t := range recent {
		if t.DirtyWall {
			dirty++
		}
	}
	return dirty*3 > len(recent)
}

func (s *sequential) count(cell record.Cell) *seen {
	c := s.seen[cell]
	if c == nil {
		c = &seen{}
		s.seen[cell] = c
	}
	return c
}

func (s *sequential) countOf(cell alg.Suite, d record.Direction) *seen {
	return s.count(record.CellOf(cell, d))
}

// block draws the next block.
func (s *sequential) block(n int, left time.Duration) ([]record.Trial, Ending) {
	random := s.spec.random(n)
	if s.spec.LoginOnly {
		return s.loginBlock(random)
	}
	s.fit()
	if ending := s.finished(); ending != "" {
		return nil, ending
	}
	var trials []record.Trial
	if n == 1 {
		s.phase = "identifying"
		trials = s.opening()
	} else {
		trials = s.later(n, left, random)
	}
	if !s.spec.BulkOnly {
		trials = append(trials, s.loginsFor(n, trials, left, random)...)
	}
	random.Shuffle(len(trials), func(i, j int) { trials[i], trials[j] = trials[j], trials[i] })
	return trials, ""
}

// opening holds the identifying cells, the reference among them.
func (s *sequential) opening() []record.Trial {
	var trials []record.Trial
	for _, d := range s.spec.Directions {
		for _, cell := range s.first {
			t := s.spec.transfer(cell, d)
			if cell == s.spec.reference() {
				t.Role = record.RoleReference
			}
			trials = append(trials, t)
		}
	}
	if s.spec.Overhead {
		for range overheadTrials {
			trials = append(trials, s.spec.overhead())
		}
	}
	return trials
}

// wish is a cell to measure in one direction.
type wish struct {
	cell      alg.Suite
	direction record.Direction
}

// later holds the reference, controls, held-out cells, cells that were not
// measured yet, and the most wanted others.
func (s *sequential) later(n int, left time.Duration, random *rand.Rand) []record.Trial {
	missing := s.missing()
	random.Shuffle(len(missing), func(i, j int) { missing[i], missing[j] = missing[j], missing[i] })
	tight := left >= 0 && time.Duration(len(missing))*s.times.transfer*9/5 > left
	var trials []record.Trial
	for _, d := range s.spec.Directions {
		t := s.spec.transfer(s.spec.reference(), d)
		t.Role = record.RoleReference
		trials = append(trials, t)
	}
	if !tight || n%2 == 0 {
		trials = append(trials, s.controls(n)...)
	}
	s.phase = "measuring every cell"
	if len(missing) == 0 {
		s.phase = "refining"
	}
	chosen := missing[:min(len(missing), blockTransfers)]
	if !tight {
		chosen = append(slices.Clone(chosen), s.recheck(2, chosen, false)...)
		chosen = append(chosen, s.wanted(max(0, blockTransfers-len(chosen)), chosen)...)
	}
	if tight && n%2 == 1 {
		chosen = append(slices.Clone(chosen), s.recheck(2, chosen, true)...)
	}
	for _, w := range chosen {
		t := s.spec.transfer(w.cell, w.direction)
		if slices.Contains(s.held, w.cell) {
			t.Role = record.RoleHoldout
		}
		trials = append(trials, t)
	}
	return trials
}

// missing are the cells without a clean measurement.
func (s *sequential) missing() []wish {
	var out []wish
	for _, d := range s.spec.Directions {
		for _, cell := range s.spec.Space.Bulk {
			if c := s.countOf(cell, d); c.clean == 0 && c.tried < maxRepeats {
				out = append(out, wish{cell, d})
			}
		}
	}
	return out
}

// recheck returns held-out cells that have too few connections for their own
// noise to stay out of the prediction error; of those, where asked for, only the
// ones that were disturbed every time.
func (s *sequential) recheck(n int, chosen []wish, disturbed bool) []wish {
	var out []wish
	for _, cell := range s.held {
		for _, d := range s.spec.Directions {
			w := wish{cell, d}
			if c := s.countOf(cell, d); c.clean > 0 && c.tried < holdoutTrials && (!disturbed || c.quiet == 0) && len(out) < n && !slices.Contains(chosen, w) {
				out = append(out, w)
			}
		}
	}
	return out
}

// fit brings the analyses up to date.
func (s *sequential) fit() {
	if s.fitted == len(s.transfers) {
		return
	}
	s.fitted = len(s.transfers)
	for _, d := range s.spec.Directions {
		s.analyses[d] = model.Analyse(d, s.cells, s.transfers, s.spec.Cores)
	}
}

// finished reports whether everything was measured, and all intervals that a
// report prints are within the precision asked for.
func (s *sequential) finished() Ending {
	if s.spec.Precision <= 0 || len(s.missing()) > 0 {
		return ""
	}
	limit := s.spec.Precision / 100
	for _, d := range s.spec.Directions {
		a := s.analyses[d]
		if a == nil {
			return ""
		}
		for _, series := range []model.Series{a.Wall, a.Client, a.Server} {
			for i, f := range series.Figures {
				if f.Known && series.Interval(i).HalfWidth() > limit {
					return ""
				}
			}
		}
	}
	if !s.spec.BulkOnly && !s.loginsPrecise(limit) {
		return ""
	}
	return EndPrecision
}

func (s *sequential) progress(p *Progress) {
	p.Phase = s.phase
	p.Remaining = s.spec.Budget
	if len(s.transfers)-s.fitted >= 4 || s.fitted == 0 {
		s.fit()
	}
	for _, d := range s.spec.Directions {
		if a := s.analyses[d]; a != nil {
			p.Ranked = a.Complete()
			p.Leaders = append(p.Leaders, s.leaders(a, 5)...)
		}
	}
}
