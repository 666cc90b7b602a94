package compare

import (
	"fmt"
	"math"

	"sshpace/internal/base/stats"
	"sshpace/internal/base/unit"
	"sshpace/internal/bench/rank"
	"sshpace/internal/record"
)

// unlike is the part of what other guests changed from one run to the next that the
// slices do not show, as a standard error of each cell.
const unlike = 0.15

// chance is what the slices of two runs that were slowed alike differ by, as a part of
// what they show: of four times seven runs of a minute, slowed by 2 to 16 %, levels agree
// best with 1 to 5 %. Five runs of one hour, all slowed by about 48 %, showed 29 to 34 %.
const chance = 0.03

// hidden is what a core that other programs of the machine keep busy may hide of it, as a
// logarithm: two times three runs beside a busy loop were 1.1 to 8.5 % apart, and 0.6 to 3.0 %
// without what their slices show.
const hidden = 0.02

// ofLogin is how much more or less than transfers a login may feel what other guests
// changed, as a standard error: one waits for the network, another (sntrup761) computes with
// vectors, and felt twice as much.
const ofLogin = 1.0

// adjust notes what other guests changed since the first file, on the same machine, and
// whether that is known.
func (c *Comparison) adjust(t *table, first, other *rank.Ranking) bool {
	if first.Environment.CPU != other.Environment.CPU {
		return false
	}
	pick := func(f rank.Figures) stats.Estimate { return f.Throughput }
	if c.By == rank.Cost {
		pick = c.of.speed
	}
	changed := Neighbours(first, other, pick)
	for key, guests := range changed {
		if e, ok := t.entries[key]; ok {
			e.guests = guests
			t.entries[key] = e
		}
	}
	return len(changed) > 0
}

// takenOut says what was taken out of the ratios.
func takenOut(tables []table, inputs []Input) (out []rank.Warning) {
	for k, t := range tables {
		slower, faster, slowed := inputs[k].Label, inputs[0].Label, -t.change()
		if slowed < 0 {
			slower, faster, slowed = faster, slower, -slowed
		}
		if slowed >= stats.Margin {
			out = append(out, rank.Warning{Name: "guests", Text: fmt.Sprintf("other guests of the machine slowed %s by %s more than %s: the ratios are corrected for it as far as the slices show it",
				slower, unit.Difference(math.Expm1(slowed)), faster)})
		}
	}
	return out
}

// change is what other guests changed in all cells together.
func (t *table) change() float64 {
	var logs []float64
	for _, cell := range t.order {
		if e := t.entries[cell]; e.guests.N > 0 {
			logs = append(logs, e.guests.Log)
		}
	}
	if len(logs) == 0 {
		return 0
	}
	return stats.Mean(logs)
}

// Neighbours is by how much other guests of the machine changed each cell of the other
// ranking, relative to the first one. How much more some cells feel them than others is
// told from both together, and only how much there was of it from either. pick is the
// figure. Empty where one of them does not show it.
func Neighbours(first, other *rank.Ranking, pick func(rank.Figures) stats.Estimate) map[record.Cell]stats.Estimate {
	shown := slowedIn(first, other, pick)
	var before, after float64
	for _, s := range shown {
		before, after = before+s.before.Log/float64(len(shown)), after+s.after.Log/float64(len(shown))
	}
	squares := before*before + after*after
	if squares == 0 {
		return nil
	}
	change, doubt := after-before, math.Hypot(chance*math.Sqrt(squares), hidden*math.Max(first.Kept(), other.Kept()))
	if math.Abs(change) <= doubt {
		change = 0
	} else {
		change *= 1 - doubt*doubt/(change*change) // James and Stein 1961
	}
	out := map[record.Cell]stats.Estimate{}
	for _, s := range shown {
		feels := (before*s.before.Log + after*s.after.Log) / squares // 1 on average
		err := change * math.Hypot(before*s.before.Err, after*s.after.Err) / squares
		err = math.Hypot(err, math.Hypot(unlike*change*feels, doubt*(feels-1)))
		out[s.cell] = stats.Estimate{Log: change * feels, Err: err, N: min(s.before.N, s.after.N)}
	}
	return out
}

// slowedCell is by how much other guests slowed a cell in two runs.
type slowedCell struct {
	cell          record.Cell
	before, after stats.Estimate
}

// slowedIn are the cells for which both runs show it.
func slowedIn(first, other *rank.Ranking, pick func(rank.Figures) stats.Estimate) (out []slowedCell) {
	before := map[record.Cell]stats.Estimate{}
	for _, c := range first.Bulk {
		before[record.CellOf(c.Suite, c.Direction)] = pick(c.Slowed)
	}
	for _, c := range other.Bulk {
		cell := record.CellOf(c.Suite, c.Direction)
		if s := (slowedCell{cell, before[cell], pick(c.Slowed)}); s.before.N > 0 && s.after.N > 0 {
			out = append(out, s)
		}
	}
	return out
}
