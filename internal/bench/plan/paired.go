package plan

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/model"
	"sshpace/internal/record"
	"sshpace/internal/ssh/admit"
)

// PairLength is how long a slice of a paired comparison moves data: much longer than a scheduler's
// turn and the start and end of a slice, much shorter than the changes of other work. On a long
// path it takes several round trips: where a window is the limit, the cost of a cipher shows in the
// last of them only.
const (
	PairLength      = 60 * time.Millisecond
	pairOverhead    = PairLength / 4 // time of a turn besides its slice
	roundTripsEach  = 10             // that a slice takes at least
	roundTripsAwake = 3              // of them, that a slice takes which wakes a connection
	roundTripsTurns = 5              // the same there: questions, answers, and opening TCP's window
	slicesAwake     = 4              // about: until a connection is as fast as it can be
)

// leastRounds is the least number of turns of a candidate before it may be dropped, and that an
// answer needs of each.
const leastRounds = 3

// paired plans a paired comparison on a user's host: the connection with the present suite stays
// open as the reference, and each candidate has its turn between two of the reference's, in a new
// random order every round. Candidates that are clearly slower than another one are closed (a race:
// Maron and Moore, NIPS 6, 1993), and others take their place: those that the policy allows come
// first.
type paired struct {
	schedule
	room       int  // connections at a time
	candidates int  // that the policy allows, or all where it allows none
	spent      int  // logins
	fresh      bool // connections were opened that have had no turn yet
}

func newPaired(d design) *paired {
	p := &paired{schedule: newSchedule(d), room: max(2, d.env.Capacity), spent: 1}
	p.connections()
	return p
}

// connections plans them in the order of opening: the reference, and the candidates that the policy
// allows, likely leaders first. Nothing else answers the question; but if it allows nothing, all of
// them are shown.
func (p *paired) connections() {
	reference := p.reference()
	order := func(cell alg.Suite) int {
		switch {
		case cell == reference:
			return 0
		case cell.MAC == "":
			return 1
		case strings.HasPrefix(cell.Cipher, "aes128"):
			return 2
		}
		return 3
	}
	cells := slices.Clone(p.space.Bulk)
	if slices.ContainsFunc(cells, p.allowed) {
		cells = slices.DeleteFunc(cells, func(cell alg.Suite) bool { return cell != reference && !p.allowed(cell) })
	}
	slices.SortStableFunc(cells, func(a, b alg.Suite) int { return cmp.Compare(order(a), order(b)) })
	for _, cell := range cells {
		role := record.RoleCell
		if cell == reference {
			role = record.RoleReference
		}
		p.todo = append(p.todo, p.connect(cell, role, 0))
	}
	p.candidates = len(cells) - 1
}

// least is the time that two candidates, or the only one, need for the turns of an answer.
func (p *paired) least() time.Duration {
	return p.takes(min(p.candidates, p.room-1, fewest), leastRounds)
}

// takes returns the time of a race: to open the candidates and the reference, and the rounds.
func (p *paired) takes(candidates, rounds int) time.Duration {
	return time.Duration(candidates+1)*(p.login()+p.awakes()) + time.Duration(rounds)*p.roundOf(candidates)
}

// roundOf is the time of one round.
func (p *paired) roundOf(candidates int) time.Duration {
	return time.Duration(2*candidates+1) * p.turnsEach()
}

// login is about what opening a connection takes.
func (p *paired) login() time.Duration { return cmp.Or(p.env.Login, usualLogin) + admit.ShortPause }

// awakes is the approximate time until a connection has reached its full speed.
func (p *paired) awakes() time.Duration {
	return slicesAwake * time.Duration(len(p.Directions)) * Awakening(p.length(), p.env.RoundTrip)
}

// LongPath is the round trip from which on a path is a long one.
const LongPath = 2 * time.Millisecond

// Awakening is the length of a slice that wakes up a connection, given that of its other slices: on
// a long path a few round trips show how fast it is.
func Awakening(length, roundTrip time.Duration) time.Duration {
	if roundTrip < LongPath {
		return length
	}
	return length * roundTripsAwake / roundTripsEach
}

func (p *paired) length() time.Duration { return max(PairLength, roundTripsEach*p.env.RoundTrip) }

// turnsEach is the approximate time of a turn in each direction.
func (p *paired) turnsEach() time.Duration {
	return time.Duration(len(p.Directions)) * (p.length() + pairOverhead + roundTripsTurns*p.env.RoundTrip)
}

// Next returns the next step, or false when the plan has ended.
func (p *paired) Next(elapsed time.Duration, fresh record.Slices) (Step, bool) {
	return p.next(elapsed, p.turnsEach()/2, fresh, p.refill)
}

// refill opens as many connections as allowed, or gives all open ones a turn.
func (p *paired) refill() {
	room := min(p.room-len(p.open), len(p.todo), p.leave(), 1+p.racing()-len(p.open))
	if len(p.open) > 1 && p.left() < p.takes(1, 0)+leastRounds*p.roundOf(p.racing()) {
		room = 0 // a late candidate would not have enough turns, and leave the answer open
	}
	switch {
	case p.Rounds > 0 && p.round >= p.Rounds*roundsEach:
		p.end(EndComplete)
	case room > 0 && (!p.fresh || len(p.open) < 2):
		p.fresh = true
		p.spent += room
		p.admit(room)
	case p.referee() == nil, len(p.open) < 2 && len(p.todo) == 0 && !p.logins.left():
		p.end(EndComplete)
	case p.Precision > 0 && len(p.todo) == 0 && p.precise(p.Precision/100):
		p.end(EndPrecision)
	default:
		p.nextRound()
	}
}

// leave is how many logins the host allows by now.
func (p *paired) leave() int {
	return max(0, admit.MostLogins(p.elapsed)-p.spent)
}

// referee returns the open connection of the reference; nil if there is none.
func (p *paired) referee() *connection {
	if i := slices.IndexFunc(p.open, refers); i >= 0 {
		return p.open[i]
	}
	return nil
}

func refers(s *connection) bool { return s.trials[0].Role == record.RoleReference }

// The most candidates in the race at a time: with more, the likely leaders would have few turns.
// Where turns are long, there are fewer.
const (
	most   = 4
	fewest = 2
)

// racing is the number of candidates in the race at a time: as many as can have three times the
// turns of an answer in the available time.
func (p *paired) racing() int {
	for n := most; n > fewest; n-- {
		if p.BudgetNS == 0 || p.takes(n, 3*leastRounds) <= p.BudgetNS {
			return n
		}
	}
	return fewest
}

// nextRound queues a round: in each direction each candidate between two turns of the reference,
// and a login where the host allows one.
func (p *paired) nextRound() {
	p.round, p.fresh = p.round+1, false
	p.race()
	reference := p.referee()
	field := slices.DeleteFunc(slices.Clone(p.open), refers)
	for i := range p.Directions {
		field = sched.Shuffled(p.Seed, p.round*len(p.Directions)+i, field)
		referred := p.turn(reference.trials[i], p.length())
		p.queue = append(p.queue, referred)
		for _, candidate := range field {
			p.queue = append(p.queue, p.turn(candidate.trials[i], p.length()), referred)
		}
	}
	if len(p.todo) == 0 && p.leave() > p.env.Kept {
		for _, t := range p.logins.take(1, p.round) {
			p.spent++
			p.single(t)
		}
	}
}

// race closes the candidates that are decided: those that are slower than another one in every
// direction, and those that are as fast as the reference if all waiting ones can have their turns
// then.
func (p *paired) race() {
	if p.Rounds > 0 {
		return
	}
	step, figures := Step{Action: Close}, p.figures()
	var left []*connection
	for _, candidate := range p.open {
		if !refers(candidate) && candidate.turns >= leastRounds*len(p.Directions) && p.known(candidate, figures) {
			step.Trials = append(step.Trials, candidate.trials...)
			continue
		}
		left = append(left, candidate)
	}
	if len(step.Trials) > 0 {
		p.open = left
		p.queue = append(p.queue, step)
	}
}

// beyond is the p value below which a candidate is out of a race: it is tested again after every
// round, and with many others.
const beyond = 0.001

// loses reports whether a cell certainly takes more wall time than some other one, by more than the
// margin.
func loses(a *model.Analysis, cell alg.Suite) bool {
	own := a.WallOf(cell)
	return own.Known() && slices.ContainsFunc(a.Wall.Figures, func(f model.Effect) bool {
		ratio := own.Over(f.Estimate)
		return f.Known() && ratio.Log > math.Log1p(stats.Margin) && ratio.P() < beyond
	})
}

// draws reports whether a cell is as fast as the reference, as far as that matters.
func draws(a *model.Analysis, cell, reference alg.Suite) bool {
	own, other := a.WallOf(cell), a.WallOf(reference)
	return own.Known() && other.Known() && own.Over(other).Interval().Verdict() == stats.Equal
}

// known reports whether a candidate has been distinguished from the others.
func (p *paired) known(candidate *connection, figures map[record.Direction]*model.Analysis) bool {
	cell, slower, same := candidate.trials[0].Cell().Suite, true, p.admitsAll()
	for _, d := range p.Directions {
		slower = slower && loses(figures[d], cell)
		same = same && draws(figures[d], cell, p.reference().Computation())
	}
	return slower || same
}

// admitsAll reports whether there is time to compare all waiting candidates with the reference. If
// not, they leave the answer open anyway, while one that is ahead by less than the margin can be
// shown to be better.
func (p *paired) admitsAll() bool {
	n := len(p.todo)
	return n > 0 && (p.BudgetNS == 0 || p.takes(n, leastRounds) <= p.left() && n <= admit.MostLogins(p.BudgetNS)-p.spent)
}

// figures returns the analyses of the slices so far, by direction.
func (p *paired) figures() map[record.Direction]*model.Analysis {
	out := map[record.Direction]*model.Analysis{}
	for _, d := range p.Directions {
		out[d] = model.Paired(d, p.computations(), p.file.Trials, p.batches())
	}
	return out
}

// precise reports whether all ratios are within ± limit.
func (p *paired) precise(limit float64) bool {
	for _, a := range p.figures() {
		for i, f := range a.Wall.Figures {
			if f.Known() && a.Wall.Interval(i).HalfWidth() > limit {
				return false
			}
		}
	}
	return true
}

// Estimate returns the measuring time of the whole plan.
func (p *paired) Estimate() time.Duration {
	if p.Rounds == 0 {
		return p.BudgetNS
	}
	conns := float64(len(p.todo) + len(p.open) + len(p.opening))
	return saturated(conns * (float64(p.login()) + float64(p.Rounds*roundsEach)*2*float64(p.turnsEach())))
}

// Progress reports the state after the last step.
func (p *paired) Progress() Progress {
	out := p.progress("comparing", p.Estimate())
	out.Total = p.candidates + 1
	out.Done = min(len(p.turns)/len(p.Directions), out.Total)
	out.Ranked = out.Done == out.Total && p.round > leastRounds
	return out
}

// Begin teaches the plan the content of its file: connections that are still in the race are opened
// again.
func (p *paired) Begin(f *record.File) {
	p.schedule.Begin(f)
	p.again(p.figures())
}

// again drops candidates that have lost their race, unless rounds are counted.
func (p *paired) again(figures map[record.Direction]*model.Analysis) {
	if p.Rounds > 0 {
		return
	}
	p.todo = slices.DeleteFunc(p.todo, func(s *connection) bool {
		cell := s.trials[0].Cell().Suite
		return !refers(s) && !slices.ContainsFunc(p.Directions, func(d record.Direction) bool { return !loses(figures[d], cell) })
	})
}
