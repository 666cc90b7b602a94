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
		for i, score := range thirst(key(a)) {
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

// thirst says for every figure how much another connection is worth.
func thirst(series model.Series) []float64 {
	out := scores(series, func(int) bool { return false })
	for i, f := range series.Figures {
		out[i] /= math.Sqrt(float64(1 + f.N))
	}
	return out
}

// leaders are the n fastest cells so far.
func (s *sequential) leaders(a *model.Analysis, n int) []Leader {
	series := key(a)
	order := fastest(series)
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
