package plan

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Action is what a step of a sitting does.
type Action int

// The actions.
const (
	Open   Action = iota // open the connections of Trials, several at a time
	Turn                 // let the connection of Trials[0] move data for Length
	Single               // carry Trials[0] out by itself: a login
	Close                // close the connections of Trials
)

// Step is one step of a sitting.
type Step struct {
	Action  Action
	Trials  []record.Trial
	Length  time.Duration // of a turn: how much CPU time its bytes are to cost the costlier side
	Long    bool          // a turn long enough for throughput
	Round   int
	Sitting int
}

// Sizes of the parts of a sitting.
const (
	turnLength  = 3 * time.Millisecond // at most: the sizes of slices lie far apart
	longLength  = 30 * time.Millisecond
	longShare   = 0.33 // of the time of all turns
	openingStep = 24   // connections that one step opens
	probeTurns  = 4    // of each CPU in a round
	pairs       = 6    // second connections
	maxOpenings = 3    // of a cell that fails to open
)

// Sitting plans turns of connections that are open together. First the cells
// that identify base, cipher and MAC are opened and measured, which gives a
// complete ranking within seconds; then all others; then round after round
// every connection takes a turn in a new random order, those where it helps most
// take another, some a long one, probes come in between, and logins between
// rounds.
type Sitting struct {
	spec     Spec
	capacity int
	cores    int
	random   *rand.Rand
	times    *trialTimes

	id                  int // of the last trial
	sitting             int
	round               int
	todo                []record.Trial // to be opened
	lines               []*line        // open
	failed              map[cellKey]int
	probes              []record.Trial
	queue               []Step
	elapsed             time.Duration
	turns, long, logins time.Duration // measuring time of each kind
	kex                 int
	ending              Ending
}

// line is an open connection.
type line struct {
	trial record.Trial
}

// NewSitting plans for at most capacity connections at a time.
func NewSitting(spec Spec, capacity, firstID int) (*Sitting, error) {
	spec, err := spec.normal()
	if err != nil {
		return nil, err
	}
	if spec.Budget == 0 && spec.Rounds == 0 {
		spec.Budget = defaultBudget
	}
	s := &Sitting{spec: spec, capacity: max(2, capacity), cores: max(1, spec.Cores), random: spec.random(0), times: newTimes(spec), id: firstID - 1, failed: map[cellKey]int{}}
	for range s.cores {
		s.probes = append(s.probes, s.number(record.Trial{Workload: record.Probe}))
	}
	s.lay()
	s.sitting = 1
	return s, nil
}

// number gives a trial its ID.
func (s *Sitting) number(t record.Trial) record.Trial {
	s.id++
	t.ID = s.id
	return t
}

// lay lists the connections: identifying cells first, then the others with the
// held-out ones among them, then second connections of some.
func (s *Sitting) lay() {
	first := identify(s.spec.Space.Bulk, s.random)
	var rest []alg.Suite
	for _, cell := range s.spec.Space.Bulk {
		if !slices.Contains(first, cell) {
			rest = append(rest, cell)
		}
	}
	s.random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	held := 0
	if total := len(s.spec.Space.Bulk); total >= minForHoldout {
		held = min(len(rest), int(math.Ceil(holdoutShare*float64(total))))
	}
	paired := s.paired(first)
	for _, d := range s.spec.Directions {
		for i, cell := range append(slices.Clone(first), rest...) {
			t := s.connection(cell, d)
			switch {
			case cell == s.spec.reference():
				t.Role = record.RoleReference
			case i >= len(first) && i < len(first)+held:
				t.Role = record.RoleHoldout
			}
			t.Pair = slices.Index(paired, cell) + 1
			s.todo = append(s.todo, t)
		}
		for i, cell := range paired {
			t := s.connection(cell, d)
			t.Role, t.Pair = record.RoleControl, i+1
			s.todo = append(s.todo, t)
		}
	}
}

// paired are the cells that get a second connection, which shows what a
// connection has of its own: the fastest in all likelihood, and some others.
func (s *Sitting) paired(first []alg.Suite) []alg.Suite {
	var out []alg.Suite
	for _, cell := range first {
		if cell.MAC == "" && len(out) < pairs/2 {
			out = append(out, cell)
		}
	}
	for _, cell := range first {
		if !slices.Contains(out, cell) && len(out) < pairs {
			out = append(out, cell)
		}
	}
	return out
}

func (s *Sitting) connection(cell alg.Suite, d record.Direction) record.Trial {
	return record.Trial{Want: alg.Suite{Cipher: cell.Cipher, MAC: cell.MAC, Kex: s.spec.BulkKex}, Workload: record.Sitting, Direction: d}
}

// Probes are the trials of the probes, one for each CPU.
func (s *Sitting) Probes() []record.Trial { return s.probes }

// Next returns the next step, or false when the plan has ended. elapsed is the
// measuring time so far.
func (s *Sitting) Next(elapsed time.Duration) (Step, bool) {
	s.elapsed = elapsed
	for s.ending == "" && len(s.queue) == 0 {
		s.refill()
	}
	if s.ending == "" && s.spec.Budget > 0 && elapsed >= s.spec.Budget {
		s.ending = EndBudget
	}
	if s.ending != "" {
		return Step{}, false
	}
	step := s.queue[0]
	s.queue = s.queue[1:]
	step.Sitting = s.sitting
	return step, true
}

// refill decides what to do for the next while.
func (s *Sitting) refill() {
	room := s.capacity - len(s.lines)
	identified := s.round >= 2
	switch {
	case len(s.todo) > 0 && room > 0 && (s.round == 0 || identified):
		n := min(openingStep, room, len(s.todo))
		var trials []record.Trial
		for _, t := range s.todo[:n] {
			trials = append(trials, s.number(t))
		}
		s.todo = s.todo[n:]
		s.queue = append(s.queue, Step{Action: Open, Trials: trials})
	case len(s.lines) == 0:
		s.ending = EndFailures
	default:
		s.nextRound()
	}
}

// nextRound queues a turn for every connection, and logins.
func (s *Sitting) nextRound() {
	s.round++
	if s.spec.Rounds > 0 && s.round > s.spec.Rounds {
		s.ending = EndComplete
		return
	}
	var steps []Step
	for _, l := range s.lines {
		steps = append(steps, Step{Action: Turn, Trials: []record.Trial{l.trial}, Length: turnLength, Round: s.round})
	}
	for range probeTurns {
		for _, t := range s.probes {
			steps = append(steps, Step{Action: Turn, Trials: []record.Trial{t}, Round: s.round})
		}
	}
	if float64(s.long) < longShare*float64(s.turns) && s.round > 4 {
		for _, l := range s.lines {
			steps = append(steps, Step{Action: Turn, Trials: []record.Trial{l.trial}, Length: longLength, Long: true, Round: s.round})
		}
	}
	s.random.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	s.queue = append(s.queue, steps...)
	if float64(s.logins) < loginShare*float64(s.elapsed) && s.round > 4 {
		for range 4 {
			kexes := s.spec.Space.Kex
			t := s.spec.login(kexes[s.kex%len(kexes)])
			s.kex++
			t.Block = s.round
			s.queue = append(s.queue, Step{Action: Single, Trials: []record.Trial{s.number(t)}})
		}
	}
}

// Opened tells the plan how a login of a connection ended.
func (s *Sitting) Opened(t record.Trial, sample record.Sample) {
	if sample.Outcome == record.OK {
		s.lines = append(s.lines, &line{trial: t})
		return
	}
	s.failed[keyOf(t)]++
	if s.failed[keyOf(t)] < maxOpenings && sample.Outcome != record.Aborted {
		s.todo = append(s.todo, t)
	}
}

// Lost tells the plan that a connection came to its end: it is opened again.
func (s *Sitting) Lost(t record.Trial) {
	s.lines = slices.DeleteFunc(s.lines, func(l *line) bool { return l.trial.ID == t.ID })
	s.queue = slices.DeleteFunc(s.queue, func(step Step) bool { return step.Trials[0].ID == t.ID })
	s.failed[keyOf(t)]++
	if s.failed[keyOf(t)] < maxOpenings {
		s.todo = append(s.todo, t)
	}
}

// Moved tells the plan what a turn showed.
func (s *Sitting) Moved(step Step, slice record.Slice) {
	s.turns += slice.WallNS
	if step.Long {
		s.long += slice.WallNS
	}
}

// Observe tells the plan what a login showed.
func (s *Sitting) Observe(t record.Trial, sample record.Sample) {
	s.logins += sample.ElapsedNS
}

// End is why the plan ended.
func (s *Sitting) End() Ending { return s.ending }
