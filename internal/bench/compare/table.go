package compare

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// entry is one cell of one file.
type entry struct {
	suite  alg.Suite
	best   stats.Estimate // its speed
	shared int            // cells that have this estimate together
	rank   int            // in its own file
}

type table struct {
	entries  map[record.Cell]entry
	order    []record.Cell
	guests   stats.Estimate // change by other guests of the machine since the first file
	shiftErr float64        // of the normalization
}

// tableOf reads the speeds of one file.
func tableOf(r *rank.Ranking, by rank.By, of sides) table {
	t := table{entries: map[record.Cell]entry{}}
	for _, c := range r.Bulk {
		e := entry{suite: c.Suite, best: c.Throughput.Estimate, shared: max(1, c.Shared), rank: c.Rank}
		if by == rank.Cost {
			e.best = of.cost(c.Sides).Inverse()
		}
		if e.best.Known() {
			key := record.CellOf(c.Suite, c.Direction)
			t.entries[key] = e
			t.order = append(t.order, key)
		}
	}
	return t
}

// shift divides all speeds by a factor, given as a logarithm: it includes the effect of other
// guests.
func (t *table) shift(log float64) {
	for key, e := range t.entries {
		e.best.Log -= log
		t.entries[key] = e
	}
	t.guests.Log = 0
}

// over returns the ratio of a cell's speed to that of the first file, with the effect of other
// guests removed from both.
func (t *table) over(own, first entry) stats.Estimate {
	ratio := own.best.Over(first.best).WithError(t.guests.Err, 0)
	ratio.Log -= t.guests.Log
	return ratio
}

// ciphers returns the names that patterns mean, of ciphers as they were measured or of their
// computations.
func (t *table) ciphers(patterns []string) (meant []string) {
	var names []string
	for _, key := range t.order {
		names = append(names, t.entries[key].suite.Cipher, key.Suite.Cipher)
	}
	for _, word := range alg.Words(patterns) {
		meant = append(meant, alg.Named(word, names)...)
	}
	return meant
}

// normalize sets the geometric mean of the cells of some ciphers, those that all files have, to 1
// in every file. It returns the names of these ciphers.
func normalize(tables []table, patterns []string) (used []string, err error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	meant := tables[0].ciphers(patterns)
	logs, variance := make([]float64, len(tables)), make([]float64, len(tables))
	cells := 0.0
	for _, key := range tables[0].order {
		name := tables[0].entries[key].suite.Cipher
		common := !slices.ContainsFunc(tables, func(t table) bool { _, has := t.entries[key]; return !has })
		if !common || !slices.Contains(meant, name) && !slices.Contains(meant, key.Suite.Cipher) {
			continue
		}
		if !slices.Contains(used, name) {
			used = append(used, name)
		}
		for i, t := range tables {
			e := t.entries[key]
			logs[i] += e.best.Log
			variance[i] += e.best.Err*e.best.Err + t.guests.Err*t.guests.Err
		}
		cells++
	}
	if cells == 0 {
		return nil, fmt.Errorf("%w: no cell of %s is in all files", ErrNoReference, strings.Join(patterns, ", "))
	}
	for i := range tables {
		tables[i].shift(logs[i] / cells)
		tables[i].shiftErr = math.Sqrt(variance[i]) / cells
	}
	return used, nil
}

// CommonCiphers lists the ciphers of cells that all files have.
func CommonCiphers(inputs []Input) []string {
	count := map[string]int{}
	for _, in := range inputs {
		seen := map[string]bool{}
		for _, c := range in.Ranking.Bulk {
			if !seen[c.Suite.Cipher] {
				seen[c.Suite.Cipher] = true
				count[c.Suite.Cipher]++
			}
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if count[name] == len(inputs) {
			out = append(out, name)
		}
	}
	return out
}

// ErrNoReference says that files cannot be normalized to the wanted ciphers.
var ErrNoReference = errors.New("nothing to normalize to")

// sides selects the costs to compare: of both sides, or of the client alone where the server's is
// unknown in one file.
type sides bool

const (
	bothSides   sides = false
	clientAlone sides = true
)

// sidesOf resolves the sides whose costs all files have.
func sidesOf(inputs []Input) sides {
	for _, in := range inputs {
		for _, c := range in.Ranking.Bulk {
			if c.Client.Known() && !c.Server.Known() {
				return clientAlone
			}
		}
		for _, k := range in.Ranking.Kex {
			if k.Client.Known() && !k.Server.Known() {
				return clientAlone
			}
		}
	}
	return bothSides
}

// cost returns the CPU time of the compared sides: of the client alone, or of both together;
// unknown if one of them is.
func (s sides) cost(of rank.Sides) stats.Estimate {
	switch {
	case s == clientAlone:
		return of.Client.Estimate
	case !of.Client.Known() || !of.Server.Known():
		return stats.Estimate{}
	}
	return of.Total.Estimate
}
