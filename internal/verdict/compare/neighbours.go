package compare

import (
	"fmt"
	"math"

	"sshpace/internal/base/stats"
	"sshpace/internal/record"
	"sshpace/internal/verdict/rank"
)

// unlike is the part of what other guests changed from one run to the next that the
// slices do not show, as a standard error of each cell.
const unlike = 0.15

// chance is what the slices of two runs that were slowed alike differ by, as a part of
// what they show: five runs of one hour, all slowed by about 48 %, showed 29 to 34 %.
const chance = 0.07

// hidden is what a core that other programs of the machine keep busy may hide of it, as a
// logarithm: beside them no slice is undisturbed.
const hidden = 0.08

// ofLogin is how much more or less than transfers a login may feel what other guests
// changed, as a standard error: one waits for the network, another (sntrup761) computes with
// vectors, and felt twice as much.
const ofLogin = 1.0

// settle notes what other guests changed since the first file, on the same machine.
func (c *Comparison) settle(t *table, first, other *rank.Ranking) {
	if first.Environment.CPU != other.Environment.CPU {
		return
	}
	pick := func(f rank.Figures) stats.Estimate { return f.Throughput }
	if c.By == rank.Cost {
		pick = c.of.speed
	}
	for key, guests := range Neighbours(first, other, pick) {
		if e, ok := t.entries[key]; ok {
			e.guests = guests
			t.entries[key] = e
		}
	}
}

// settled says what was taken out of the ratios.
func settled(tables []table, inputs []Input) (out []rank.Warning) {
	for k, t := range tables {
		slower, faster, slowed := inputs[k].Label, inputs[0].Label, -t.change()
		if slowed < 0 {
			slower, faster, slowed = faster, slower, -slowed
		}
		if slowed >= indifferent {
			out = append(out, rank.Warning{Name: "guests", Text: fmt.Sprintf("other guests of the machine slowed %s by %.0f %% more than %s: the ratios are without what the slices of both show of that",
				slower, 100*math.Expm1(slowed), faster)})
		}
	}
	return out
}

// change is what other guests changed in all cells together.
func (t *table) change() float64 {
	var logs []float64
	for _, e := range t.entries {
		if e.guests.N > 0 {
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
	before := map[record.Cell]stats.Estimate{}
	for _, c := range first.Bulk {
		before[record.CellOf(c.Suite, c.Direction)] = pick(c.Slowed)
	}
	type both struct{ a, b stats.Estimate }
	shown := map[record.Cell]both{}
	var less, more float64
	for _, c := range other.Bulk {
		key := record.CellOf(c.Suite, c.Direction)
		if a, b := before[key], pick(c.Slowed); a.N > 0 && b.N > 0 {
			shown[key] = both{a, b}
			less, more = less+a.Log, more+b.Log
		}
	}
	n := float64(len(shown))
	less, more = less/n, more/n
	squares := less*less + more*more
	change, doubt := more-less, math.Hypot(chance*math.Sqrt(squares), hidden*math.Max(first.Kept(), other.Kept()))
	change *= math.Max(0, 1-doubt*doubt/(change*change)) // James and Stein 1961
	out := map[record.Cell]stats.Estimate{}
	for key, s := range shown {
		feels := (less*s.a.Log + more*s.b.Log) / squares // 1 on average
		err := change * math.Hypot(less*s.a.Err, more*s.b.Err) / squares
		err = math.Hypot(err, math.Hypot(unlike*change*feels, doubt*(feels-1)))
		out[key] = stats.Estimate{Log: change * feels, Err: err, N: min(s.a.N, s.b.N)}
	}
	return out
}
