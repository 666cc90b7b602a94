package plan

import (
	"cmp"
	"math"
	"slices"

	"sshpace/internal/measure/model"
)

// wanted are the n cells where another connection changes most: large errors,
// leaders, neighbours that are not told apart, and cells that the model does not
// explain.
func (s *sequential) wanted(n int, chosen []wish) []wish {
	type scored struct {
		wish
		score float64
	}
	var all []scored
	for _, d := range s.spec.Directions {
		a := s.analyses[d]
		if a == nil {
			continue
		}
		for i, score := range scores(key(a)) {
			cell, offered := s.names[a.Cells[i]]
			w := wish{cell, d}
			if offered && !slices.Contains(chosen, w) && !slices.Contains(s.held, cell) && s.countOf(cell, d).tried < maxTrialsPerCell {
				all = append(all, scored{w, score})
			}
		}
	}
	slices.SortStableFunc(all, func(x, y scored) int { return cmp.Compare(y.score, x.score) })
	var out []wish
	for _, w := range all[:min(n, len(all))] {
		out = append(out, w.wish)
	}
	return out
}

// leaders is how many of the fastest cells get extra attention.
const leaders = 10

// scores says for every figure how much another connection is worth.
func scores(series model.Series) []float64 {
	order := make([]int, 0, len(series.Figures))
	for i, f := range series.Figures {
		if f.Known {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(series.Figures[i].Log, series.Figures[j].Log) })
	typical := math.Max(series.TypicalError(), 1e-6)
	out := make([]float64, len(series.Figures))
	for place, i := range order {
		f := series.Figures[i]
		score := f.Err / typical
		if place < leaders {
			score++
		}
		for _, other := range []int{place - 1, place + 1} {
			if other >= 0 && other < len(order) && unseparated(f, series.Figures[order[other]]) {
				score += 0.5
			}
		}
		score += math.Min(3, math.Max(0, f.Surprise()-2))
		out[i] = score / math.Sqrt(float64(1+f.N))
	}
	return out
}

// unseparated reports whether two cells may differ by more than the smallest
// effect worth telling, but are not yet told apart.
func unseparated(a, b model.Figure) bool {
	gap, err := math.Abs(a.Log-b.Log), math.Hypot(a.Err, b.Err)
	return gap < 2*err && gap+2*err > 0.01
}

// leaders are the n fastest cells so far.
func (s *sequential) leaders(a *model.Analysis, n int) []Leader {
	series := key(a)
	order := make([]int, 0, len(a.Cells))
	for i, f := range series.Figures {
		if f.Known {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(series.Figures[i].Log, series.Figures[j].Log) })
	var out []Leader
	for _, i := range order[:min(n, len(order))] {
		l := Leader{Cell: s.names[a.Cells[i]], Direction: a.Direction, Predicted: series.Figures[i].N == 0}
		if f := a.Wall.Figures[i]; f.Known {
			l.Throughput = 1e9 * math.Exp(-f.Log)
		}
		if f := a.Client.Figures[i]; f.Known {
			l.CostNS = math.Exp(f.Log)
		}
		out = append(out, l)
	}
	return out
}
