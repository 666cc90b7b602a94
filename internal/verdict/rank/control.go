package rank

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
	"sshpace/internal/measure/model"
	"sshpace/internal/record"
)

// Control is one hidden A/A comparison: the same computation under two names.
type Control struct {
	A, B      alg.Suite
	Ratio     Quantity // B relative to A in what orders the ranking
	Separated bool     // the run took them for different: it should not
}

// pair is two connections with the same computation under two names.
type pair struct{ a, b model.Transfer }

// pairs finds the complete A/A pairs of a direction, "" meaning all.
func pairs(transfers []model.Transfer, direction record.Direction) []pair {
	halves := map[int][]model.Transfer{}
	for _, t := range transfers {
		if t.Trial.Role == record.RoleControl && t.Trial.Pair > 0 && (direction == "" || t.Cell.Direction == direction) {
			halves[t.Trial.Pair] = append(halves[t.Trial.Pair], t)
		}
	}
	var out []pair
	for _, id := range slices.Sorted(maps.Keys(halves)) {
		two := halves[id]
		slices.SortStableFunc(two, func(x, y model.Transfer) int {
			return cmp.Compare(x.Trial.Asked().String(), y.Trial.Asked().String())
		})
		if len(two) == 2 && two[0].Cell == two[1].Cell && two[0].Trial.Asked() != two[1].Trial.Asked() {
			out = append(out, pair{two[0], two[1]})
		}
	}
	return out
}

// bulkControls compares the names of each A/A pair with what orders the
// ranking. tie is the difference that does not count, in percent.
func bulkControls(d *data, by By, tie float64) []Control {
	value := func(t model.Transfer) stats.Estimate { return t.Wall }
	if by == Cost {
		value = func(t model.Transfer) stats.Estimate { return t.Total }
	}
	type names struct{ a, b alg.Suite }
	logs := map[names][]float64{}
	for _, p := range pairs(d.transfers, "") {
		if a, b := value(p.a), value(p.b); a.N > 0 && b.N > 0 {
			n := names{p.a.Trial.Asked().Bulk(), p.b.Trial.Asked().Bulk()}
			logs[n] = append(logs[n], b.Log-a.Log)
		}
	}
	keys := slices.SortedFunc(maps.Keys(logs), func(x, y names) int { return cmp.Compare(x.a.String(), y.a.String()) })
	var out []Control
	var groups [][]float64
	for _, n := range keys {
		out = append(out, Control{A: n.a, B: n.b})
		groups = append(groups, logs[n])
	}
	separate(out, groups, tie)
	return out
}

// separate tests each control with a deviation pooled over all of them, and
// Holm's correction, as the cells of the ranking are told apart: by more than
// a tie, in percent, and significantly.
func separate(controls []Control, groups [][]float64, tie float64) {
	deviation, degrees := stats.PooledDeviation(groups)
	ps := make([]float64, len(groups))
	for i, logs := range groups {
		controls[i].Ratio = stats.PooledInterval(logs, deviation, degrees).Exp()
		ps[i] = 1
		if degrees > 0 {
			ps[i] = stats.Estimate{Log: stats.Mean(logs), Err: deviation / math.Sqrt(float64(len(logs))), DF: degrees}.P()
		}
	}
	for i, p := range stats.Holm(ps) {
		off := math.Abs(math.Log(controls[i].Ratio.Value))
		controls[i].Separated = p < 1-stats.Confidence && off > math.Log1p(math.Max(tie, minEffect)/100)
	}
}
