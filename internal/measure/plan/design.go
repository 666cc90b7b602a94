package plan

import (
	"math"
	"math/rand/v2"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/record"
)

// lay draws the identifying design and the held-out cells.
func (s *sequential) lay() {
	s.names, s.loginLogs = map[alg.Suite]alg.Suite{}, map[string][]float64{}
	random := s.spec.random(0)
	var rest []alg.Suite
	for _, cell := range s.spec.Space.Bulk {
		id := cell.Computation()
		s.names[id] = cell
		s.cells = append(s.cells, id)
	}
	s.first = identify(s.spec.Space.Bulk, random)
	for _, cell := range s.spec.Space.Bulk {
		if !slices.Contains(s.first, cell) {
			rest = append(rest, cell)
		}
	}
	random.Shuffle(len(rest), func(i, j int) { rest[i], rest[j] = rest[j], rest[i] })
	if total := len(s.spec.Space.Bulk); total >= minForHoldout {
		s.held = rest[:min(len(rest), int(math.Ceil(holdoutShare*float64(total))))]
	}
}

// identify picks the cells that determine every cipher and every MAC: all AEAD
// ciphers, and of the table of ciphers by MACs a ring that touches every row and
// every column and joins them: each name of the longer list with one of the
// shorter, in turn, and the first few with the next one too.
func identify(cells []alg.Suite, random *rand.Rand) []alg.Suite {
	var out []alg.Suite
	var ciphers, macs []string
	for _, c := range cells {
		if c.MAC == "" {
			out = append(out, c)
			continue
		}
		if !slices.Contains(ciphers, c.Cipher) {
			ciphers = append(ciphers, c.Cipher)
		}
		if !slices.Contains(macs, c.MAC) {
			macs = append(macs, c.MAC)
		}
	}
	random.Shuffle(len(ciphers), func(i, j int) { ciphers[i], ciphers[j] = ciphers[j], ciphers[i] })
	random.Shuffle(len(macs), func(i, j int) { macs[i], macs[j] = macs[j], macs[i] })
	long, short := len(macs), len(ciphers)
	at := func(l, s int) alg.Suite { return alg.Suite{Cipher: ciphers[s], MAC: macs[l]} }
	if long < short {
		long, short = short, long
		at = func(l, s int) alg.Suite { return alg.Suite{Cipher: ciphers[l], MAC: macs[s]} }
	}
	add := func(c alg.Suite) {
		if slices.Contains(cells, c) && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	for l := 0; l < long && short > 0; l++ {
		add(at(l, l%short))
	}
	for l := 0; l < min(short+1, long) && short > 0; l++ {
		add(at(l, (l+1)%short))
	}
	return out
}

// controls is one A/A pair: an AEAD cipher under two MAC names, which its
// connection ignores.
func (s *sequential) controls(n int) []record.Trial {
	macs := s.spec.Space.Offer.MACs
	var aead []alg.Suite
	for _, cell := range s.spec.Space.Bulk {
		if cell.MAC == "" {
			aead = append(aead, cell)
		}
	}
	if len(aead) == 0 || len(macs) < 2 {
		return nil
	}
	cell, direction := aead[n%len(aead)], s.spec.Directions[n/len(aead)%len(s.spec.Directions)]
	// The two names of a cipher stay the same, so that a run can compare them.
	names := s.spec.random(-1 - n%len(aead)).Perm(len(macs))[:2]
	var trials []record.Trial
	for _, name := range names {
		t := s.spec.transfer(cell, direction)
		t.Role, t.Pair = record.RoleControl, n
		t.Offered = alg.Suite{Cipher: cell.Cipher, MAC: macs[name], Kex: t.Want.Kex}
		trials = append(trials, t)
	}
	return trials
}
