package plan

import (
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/sched"
	"sshpace/internal/record"
)

// Numbers of connections.
const (
	pairs        = 6 // cells with a second connection
	leaderSeats  = 6 // connections of a likely leader, where there is room for all at once
	heldOutSeats = 3 // of a held-out cell

	holdoutShare  = 0.1 // of the cells
	minForHoldout = 30  // cells, below which none is held out
)

// connections lists them: cells that identify base, cipher and MAC first, then the held-out ones
// among the rest, then second connections of some cells.
func (s *sitting) connections() []*connection {
	first := identify(s.space.Bulk, s.Seed)
	reference := s.reference()
	if i := slices.Index(first, reference); i > 0 {
		first = slices.Insert(slices.Delete(first, i, i+1), 0, reference)
	}
	var rest []alg.Suite
	for _, cell := range s.space.Bulk {
		if !slices.Contains(first, cell) {
			rest = append(rest, cell)
		}
	}
	rest = sched.Shuffled(s.Seed, 0, rest)
	held := 0
	if total := len(s.space.Bulk); total >= minForHoldout {
		held = min(len(rest), int(math.Ceil(holdoutShare*float64(total))))
	}
	s.first = len(first)
	paired := pairsOf(first)
	var out []*connection
	for i, cell := range append(slices.Clone(first), rest...) {
		role := record.RoleCell
		switch {
		case cell == reference:
			role = record.RoleReference
		case i >= len(first) && i < len(first)+held:
			role = record.RoleHoldout
		}
		out = append(out, s.connect(cell, role, slices.Index(paired, cell)+1))
	}
	for i, cell := range paired {
		out = append(out, s.connect(cell, record.RoleControl, i+1))
	}
	if further := s.further(out); len(out)+len(further) <= s.capacity {
		out = append(out, further...)
	}
	return out
}

// further returns additional connections: of likely leaders, and two more of every held-out cell,
// whose own error must not count as that of its prediction. A connection's own part is 1 % of
// either side's cost, and 5 % in the fastest ciphers, which matter most for a choice.
func (s *sitting) further(all []*connection) (out []*connection) {
	for _, cell := range s.space.Bulk {
		for n := 2; s.leads(cell) && n < leaderSeats; n++ {
			out = append(out, s.connect(cell, record.RoleControl, 0))
		}
	}
	for _, conn := range all {
		if t := conn.trials[0]; t.Role == record.RoleHoldout {
			for range heldOutSeats - 1 {
				out = append(out, s.connect(t.Want.Bulk(), record.RoleHoldout, 0))
			}
		}
	}
	return out
}

// leads reports whether a cell is a likely leader, or the present one.
func (s *sitting) leads(cell alg.Suite) bool {
	return cell.MAC == "" || cell.Computation() == s.Present.Computation()
}

// pairsOf returns the cells with a second connection, which shows how much connections differ: AEAD
// ciphers, likely leaders, and some others.
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

// turnover closes the connections of a sitting that has had its time, except for the reference, and
// starts the next.
func (s *sitting) turnover() {
	step := Step{Action: Close}
	kept := s.open[:0]
	for _, conn := range s.open {
		if conn.trials[0].Role == record.RoleReference {
			kept = append(kept, conn)
			continue
		}
		step.Trials = append(step.Trials, conn.trials...)
	}
	s.open = kept
	s.queue = append(s.queue, step)
	s.sitting++
	s.inSitting, s.began = 0, s.elapsed
}

// over reports whether the open connections have had their share of the time, and others wait.
func (s *sitting) over() bool {
	if len(s.todo) == 0 || len(s.open) < s.capacity {
		return false
	}
	if s.Rounds > 0 {
		return s.counted() >= s.Rounds
	}
	share := float64(len(s.open)) / float64(len(s.open)+len(s.todo))
	return float64(s.elapsed-s.began) >= share*float64(s.BudgetNS-s.began)
}
