package plan

import (
	"cmp"
	"slices"
	"time"

	"sshpace/internal/base/sched"
	"sshpace/internal/bench/model"
	"sshpace/internal/record"
)

// Lengths of turns. The noise of a slice hardly depends on its length; the common cost besides the
// bytes shows in the difference between brief and usual ones, which a connection has alternately.
// The others are for throughput: in steady ones the scheduler gives each side a CPU soon enough to
// show how fast a long transfer is.
const (
	BriefLength  = time.Millisecond / 2
	UsualLength  = 3 * BriefLength
	SteadyLength = 80 * time.Millisecond
)

// How the time is shared.
const (
	loginShare = 0.2 // of the whole time
	early      = 4   // rounds before anything but short turns
	roundsEach = 8   // in one that the user asks for
)

// sitting plans turns of connections that are open together. First the cells that identify base,
// cipher and MAC are opened and measured, which gives a complete ranking within seconds; then the
// others as far as there is room; then round after round every connection takes a turn in a new
// random order, some of them a long one, and logins come between rounds. Where there is not room
// for all, several sittings follow each other, and the reference cell is open in all of them.
type sitting struct {
	schedule
	capacity  int
	first     int // connections that identify all effects
	inSitting int // rounds of this sitting
	began     time.Duration

	moving time.Duration  // wall time of all turns
	long   time.Duration  // of the long ones among them
	longs  int            // how many they are, of a connection in all its directions
	longOf map[string]int // long turns of a cipher

	fitted   time.Duration // when the analyses were made
	analyses map[record.Direction]*model.Analysis
}

// newSitting plans for as many simultaneous connections as there is room for.
func newSitting(d design) *sitting {
	s := &sitting{schedule: newSchedule(d), capacity: max(2, d.env.Capacity), longOf: map[string]int{}, analyses: map[record.Direction]*model.Analysis{}}
	s.todo = s.connections()
	return s
}

// Next returns the next step, or false when the plan has ended.
func (s *sitting) Next(elapsed time.Duration, fresh record.Slices) (Step, bool) {
	return s.next(elapsed, 0, fresh, s.refill)
}

// refill decides the next steps.
func (s *sitting) refill() {
	identified := s.inSitting >= 2 || s.sitting > 1
	room := len(s.open) < s.capacity
	switch {
	case len(s.todo) > 0 && room && (len(s.open) == 0 || identified || len(s.open) < s.first):
		s.admit(s.opens())
	case len(s.open) == 0 && !s.logins.left():
		s.end(EndComplete)
	case s.over():
		s.turnover()
	case s.enough():
	default:
		s.nextRound()
	}
}

// enough ends the plan when the requested rounds or precision are reached.
func (s *sitting) enough() bool {
	switch {
	case s.Rounds > 0 && s.counted() >= s.Rounds && len(s.todo) == 0:
		s.end(EndComplete)
	case s.Precision > 0 && len(s.todo) == 0 && s.precise(s.Precision/100) && s.logins.precise(s.Precision/100):
		s.end(EndPrecision)
	}
	return s.ending != ""
}

// opens is how many connections to open: the first few give a ranking soon.
func (s *sitting) opens() int {
	n := min(openingStep, s.capacity-len(s.open), len(s.todo))
	if s.inSitting == 0 && s.sitting == 1 {
		n = min(n, s.first)
	}
	return n
}

// counted is how many of the user's rounds this sitting has had.
func (s *sitting) counted() int { return s.inSitting / roundsEach }

// nextRound queues a turn for every connection, with its logins and copies.
func (s *sitting) nextRound() {
	s.round, s.inSitting = s.round+1, s.inSitting+1
	if s.inSitting > 1 {
		s.fit(s.elapsed)
	}
	var steps []Step
	for _, conn := range s.open {
		for _, t := range conn.trials {
			steps = append(steps, s.short(t, s.inSitting))
		}
	}
	steps = append(steps, s.longTurns()...)
	s.queue = append(s.queue, sched.Shuffled(s.Seed, s.round, steps)...)
	for _, t := range s.singles() {
		s.single(t)
	}
}

// Shares of the time of all turns. Throughput follows from costs, so that not every connection
// needs a turn for it.
const (
	steadyShare  = 0.3
	steadyRounds = 8 // rounds that the user asks for, the first of which has steady turns
)

// favor is how many turns for throughput a likely leader has for one of another cipher.
const favor = 4.0

// affordable is how many more slices for throughput fit into their share of all time.
func (s *sitting) affordable() int {
	if s.long == 0 {
		return 1 // shows the time of one
	}
	return int((steadyShare*float64(s.moving) - float64(s.long)) * float64(s.longs) / float64(s.long))
}

// longTurns returns the slices for throughput of the next round: as many as the time allows; if the
// user sets the rounds, each connection has one every few rounds.
func (s *sitting) longTurns() (steps []Step) {
	var conns []*connection
	switch {
	case s.Rounds > 0 && s.inSitting%roundsEach == roundsEach/2 && s.counted()%steadyRounds == 0:
		conns = s.open
	case s.Rounds == 0 && s.inSitting >= early:
		conns = s.due(s.affordable())
	}
	for _, conn := range conns {
		s.longs++
		for _, t := range conn.trials {
			step := s.turn(t, SteadyLength)
			step.Long = true
			steps = append(steps, step)
		}
	}
	return steps
}

// cipherOf returns the key by which turns for throughput are shared.
func cipherOf(a *connection) string { return a.trials[0].Cell().Suite.Cipher }

// served returns how many slices for throughput the cipher of a connection has had, weighted.
func (s *sitting) served(a *connection) float64 {
	n := float64(s.longOf[cipherOf(a)])
	if s.leads(a.trials[0].Cell().Suite) {
		return n / favor
	}
	return n
}

// due returns n of the open connections, those first whose cipher was served least, at random among
// equals.
func (s *sitting) due(n int) (out []*connection) {
	left := sched.Shuffled(s.Seed, s.round, s.open)
	for len(out) < n && len(left) > 0 {
		i := slices.Index(left, slices.MinFunc(left, func(a, b *connection) int { return cmp.Compare(s.served(a), s.served(b)) }))
		s.longOf[cipherOf(left[i])]++
		out, left = append(out, left[i]), slices.Delete(left, i, i+1)
	}
	return out
}

// singles returns the logins and copies that follow a round.
func (s *sitting) singles() []record.Trial {
	if s.Rounds > 0 {
		if s.inSitting%roundsEach == 0 && len(s.todo) == 0 {
			return s.logins.counted(s.round)
		}
		return nil
	}
	if s.inSitting < early {
		return nil
	}
	return s.logins.some(s.round, s.elapsed, s.left())
}

// short returns the nth turn of a connection.
func (s *sitting) short(t record.Trial, n int) Step {
	if (t.ID+n)%2 == 0 {
		return s.turn(t, BriefLength)
	}
	return s.turn(t, UsualLength)
}

// refit is the growth of the measuring time after which the analyses are renewed: more slices
// change them ever more slowly.
const refit = 2.0

// fit brings the analyses up to date, if they are old.
func (s *sitting) fit(elapsed time.Duration) {
	if float64(elapsed) < refit*float64(s.fitted) || len(s.turns) == 0 {
		return
	}
	s.fitted = elapsed
	sittings := model.SittingsOf(s.file.Trials, s.batches())
	for _, d := range s.Directions {
		s.analyses[d] = model.Analyze(d, s.computations(), sittings, s.env.Cores)
	}
}

// ranked reports whether every cell is measured or predicted.
func (s *sitting) ranked() bool {
	for _, d := range s.Directions {
		if a := s.analyses[d]; a == nil || !a.Complete() {
			return false
		}
	}
	return true
}

// precise reports whether all intervals that a report prints are within ± limit.
func (s *sitting) precise(limit float64) bool {
	for _, d := range s.Directions {
		a := s.analyses[d]
		if a == nil {
			return false
		}
		for _, series := range []model.Series{a.Wall, a.Client, a.Server} {
			for i, f := range series.Figures {
				if f.Known() && series.Interval(i).HalfWidth() > limit {
					return false
				}
			}
		}
	}
	return true
}

// Moved records the result of a turn.
func (s *sitting) Moved(step Step, slice record.Slice) {
	s.schedule.Moved(step, slice)
	s.moving += slice.WallNS
	if step.Long {
		s.long += slice.WallNS
	}
}

// Estimate returns the measuring time of the whole plan.
func (s *sitting) Estimate() time.Duration {
	if s.Rounds == 0 {
		return s.BudgetNS
	}
	conns := float64(len(s.todo)+len(s.open)+len(s.opening)) * float64(len(s.Directions))
	turn := float64(roundsEach)*float64(BriefLength+UsualLength) + float64(2*SteadyLength)/steadyRounds
	opening := float64(len(s.todo)) * float64(s.logins.typical) / 4
	logins := float64(s.logins.perRound()*len(s.space.Kex)) * float64(s.logins.typical)
	return saturated(opening + float64(s.Rounds)*(conns*turn+logins))
}

// Progress reports the state after the last step.
func (s *sitting) Progress() Progress {
	phase := "measuring"
	if s.inSitting < early {
		phase = "identifying"
	}
	out := s.progress(phase, s.Estimate())
	out.Done, out.Total, out.Ranked = len(s.turns)+s.logins.done(), s.cells(), s.ranked()
	return out
}

// Begin teaches the plan the content of its file.
func (s *sitting) Begin(f *record.File) {
	s.schedule.Begin(f)
	if len(f.Slices) > 0 {
		s.resume()
	}
}

// resume puts connections with the fewest turns first, and leaves out those with all their rounds.
func (s *sitting) resume() {
	conns := map[record.Cell]int{}
	for _, conn := range s.todo {
		conns[conn.trials[0].Cell()]++
	}
	had := func(conn *connection) int {
		cell := conn.trials[0].Cell()
		return s.turns[cell] / conns[cell]
	}
	slices.SortStableFunc(s.todo, func(a, b *connection) int { return cmp.Compare(had(a), had(b)) })
	if s.inSitting = early; s.Rounds == 0 {
		return
	}
	s.todo = slices.DeleteFunc(s.todo, func(conn *connection) bool { return had(conn) >= s.Rounds*roundsEach })
	if len(s.todo) == 0 {
		s.end(EndComplete)
		return
	}
	s.inSitting = had(s.todo[0])
}
