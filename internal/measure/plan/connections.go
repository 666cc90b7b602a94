package plan

import (
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// Numbers of connections.
const (
	openingStep  = 24 // that one step opens
	pairs        = 6  // cells with a second connection
	leaderSeats  = 6  // connections of a likely leader, where there is room for all at once
	heldOutSeats = 3  // of a held-out cell, likewise

	holdoutShare  = 0.1 // of the cells
	minForHoldout = 30  // cells, below which none is held out
)

// seat is a connection that is to be open: a trial for each direction, which
// share it.
type seat struct {
	trials []record.Trial
	failed int // times it could not be opened, or was lost before it moved much
	turns  int // since it was opened
	long   int // of them, those that show throughput, of a likely leader
}

// seats lists the connections: cells that identify base, cipher and MAC first,
// then the held-out ones among the rest, then second connections of some cells.
func (s *sitting) seats() []*seat {
	first := identify(s.space.Bulk, s.random)
	reference := s.reference()
	slices.SortStableFunc(first, func(a, b alg.Suite) int { return prefer(a == reference, b == reference) })
	var rest []alg.Suite
	for _, cell := range s.space.Bulk {
		if !slices.Contains(first, cell) {
			rest = append(rest, cell)
		}
	}
	s.random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	held := 0
	if total := len(s.space.Bulk); total >= minForHoldout {
		held = min(len(rest), int(math.Ceil(holdoutShare*float64(total))))
	}
	s.first = len(first)
	paired := pairsOf(first)
	var out []*seat
	for i, cell := range append(slices.Clone(first), rest...) {
		role := record.RoleCell
		switch {
		case cell == reference:
			role = record.RoleReference
		case i >= len(first) && i < len(first)+held:
			role = record.RoleHoldout
		}
		out = append(out, s.seat(cell, role, slices.Index(paired, cell)+1))
	}
	for i, cell := range paired {
		out = append(out, s.seat(cell, record.RoleControl, i+1))
	}
	if further := s.further(out); len(out)+len(further) <= s.capacity {
		out = append(out, further...)
	}
	return out
}

// further connections: of likely leaders, and two more of every held-out
// cell, whose own error is not to pass for that of its prediction. What a connection has of
// its own is 1 % of either side's cost, and 5 % in the fastest ciphers, which are the
// ones that a choice is made between.
func (s *sitting) further(all []*seat) (out []*seat) {
	for _, cell := range s.space.Bulk {
		for n := 2; s.leads(cell) && n < leaderSeats; n++ {
			out = append(out, s.seat(cell, record.RoleControl, 0))
		}
	}
	for _, seat := range all {
		if t := seat.trials[0]; t.Role == record.RoleHoldout {
			for range heldOutSeats - 1 {
				out = append(out, s.seat(t.Want.Bulk(), record.RoleHoldout, 0))
			}
		}
	}
	return out
}

// leads tells a likely leader, and what is used now.
func (s *sitting) leads(cell alg.Suite) bool {
	return cell.MAC == "" || cell.Computation() == s.Present.Computation()
}

// prefer orders what is first.
func prefer(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}

// pairsOf are the cells that get a second connection, which shows what a
// connection has of its own: AEAD ciphers, likely leaders, and some others.
func pairsOf(first []alg.Suite) []alg.Suite {
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

func (s *sitting) seat(cell alg.Suite, role record.Role, pair int) *seat {
	out := &seat{}
	for _, d := range s.Directions {
		want := alg.Suite{Cipher: cell.Cipher, MAC: cell.MAC, Kex: s.bulkKex}
		out.trials = append(out.trials, record.Trial{Want: want, Workload: record.Sitting, Direction: d, Role: role, Pair: pair})
	}
	return out
}

// admit queues the opening of as many seats as there is room for in one step.
func (s *sitting) admit() {
	n := min(openingStep, s.capacity-len(s.open), len(s.todo))
	if s.pass == 0 && s.sitting == 1 {
		n = min(n, s.first) // a first ranking soon
	}
	step := Step{Action: Open}
	for _, seat := range s.todo[:n] {
		for i := range seat.trials {
			seat.trials[i] = s.number(seat.trials[i])
			seat.trials[i].Shares = seat.trials[0].ID
		}
		seat.trials[0].Shares = 0
		seat.turns, seat.long = 0, 0
		step.Trials = append(step.Trials, seat.trials...)
		s.opening = append(s.opening, seat)
	}
	s.todo = s.todo[n:]
	s.queue = append(s.queue, step)
}

// seatOf finds the seat of a trial.
func seatOf(seats []*seat, id int) (index int) {
	return slices.IndexFunc(seats, func(s *seat) bool {
		return slices.ContainsFunc(s.trials, func(t record.Trial) bool { return t.ID == id })
	})
}

// Opened tells the plan how the login of a connection ended.
func (s *sitting) Opened(t record.Trial, sample record.Sample) {
	i := seatOf(s.opening, t.ID)
	if i < 0 {
		return // the second direction of a connection
	}
	seat := s.opening[i]
	s.opening = slices.Delete(s.opening, i, i+1)
	switch {
	case sample.Outcome == record.OK:
		s.worked, s.inARow = true, 0
		s.open = append(s.open, seat)
		return
	case sample.Outcome == record.Aborted:
		s.todo = append(s.todo, seat)
		return
	}
	s.inARow++
	if !unconnected(sample) {
		seat.failed++
	}
	if s.retry(seat); s.inARow >= maxInARow || !s.worked && s.inARow >= min(maxStart, maxAttempts*s.total) {
		s.ending = EndFailures
	}
}

// retry opens a seat again, unless it was tried often enough.
func (s *sitting) retry(seat *seat) {
	if seat.failed < maxAttempts {
		s.todo = append(s.todo, seat)
		return
	}
	s.gone = append(s.gone, seat)
}

// Lost tells the plan that a connection came to its end by itself. It is opened
// again, unless that happens all the time.
func (s *sitting) Lost(t record.Trial) {
	i := seatOf(s.open, t.ID)
	if i < 0 {
		return
	}
	lost := s.open[i]
	s.open = slices.Delete(s.open, i, i+1)
	s.queue = slices.DeleteFunc(s.queue, func(step Step) bool {
		return step.Action == Turn && seatOf([]*seat{lost}, step.Trials[0].ID) == 0
	})
	if lost.turns < fewTurns {
		lost.failed++
	}
	s.retry(lost)
}

// fewTurns is how often a connection must have moved data to be worth opening
// without end.
const fewTurns = 20

// turnover closes the connections of a sitting that has had its time, but for the
// reference, and starts the next.
func (s *sitting) turnover() {
	step := Step{Action: Close}
	kept := s.open[:0]
	for _, seat := range s.open {
		if seat.trials[0].Role == record.RoleReference {
			kept = append(kept, seat)
			continue
		}
		step.Trials = append(step.Trials, seat.trials...)
	}
	s.open = kept
	s.queue = append(s.queue, step)
	s.sitting++
	s.pass, s.began = 0, s.elapsed
}

// over reports whether the connections that are open have had their share of the
// time, and others wait.
func (s *sitting) over() bool {
	if len(s.todo) == 0 || len(s.open) < s.capacity {
		return false
	}
	if s.Rounds > 0 {
		return s.rounds() >= s.Rounds
	}
	share := float64(len(s.open)) / float64(len(s.open)+len(s.todo))
	return float64(s.elapsed-s.began) >= share*float64(s.BudgetNS-s.began)
}
