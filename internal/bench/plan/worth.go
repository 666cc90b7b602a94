package plan

import (
	"cmp"
	"math"
	"slices"
	"time"

	"sshpace/internal/bench/model"
	"sshpace/internal/record"
)

// worth knows what the turns so far have shown, and where another one helps
// most.
type worth struct {
	*seating
	fitted   time.Duration // when the analyses were made
	analyses map[record.Direction]*model.Analysis
}

// refit is by how much the measuring time must have grown since the analyses
// were made: what more slices change, they change ever more slowly.
const refit = 2.0

// fit brings the analyses up to date, if they are old.
func (w *worth) fit(elapsed time.Duration) {
	if float64(elapsed) < refit*float64(w.fitted) || len(w.turns) == 0 {
		return
	}
	w.fitted = elapsed
	sittings := model.SittingsOf(w.trials, w.batches)
	for _, d := range w.Directions {
		w.analyses[d] = model.Analyse(d, w.computations(), sittings, w.env.Cores)
	}
}

// ranked reports whether every cell is measured or predicted.
func (w *worth) ranked() bool {
	for _, d := range w.Directions {
		if a := w.analyses[d]; a == nil || !a.Complete() {
			return false
		}
	}
	return true
}

// precise reports whether all intervals that a report prints are within ± limit.
func (w *worth) precise(limit float64) bool {
	for _, d := range w.Directions {
		a := w.analyses[d]
		if a == nil {
			return false
		}
		for _, series := range []model.Series{a.Wall, a.Client, a.Server} {
			for i, f := range series.Figures {
				if f.Known() && series.Interval(i).HalfWidth() > limit {
					return false
				}
			}
		}
	}
	return true
}

// wanted are the n open connections of which another turn changes most: large
// errors, leaders, the present choice, neighbours that are not told apart, and
// cells that the model does not explain; held-out cells never.
func (w *worth) wanted(open []*seat, n int) []record.Trial {
	type scored struct {
		trial record.Trial
		score float64
	}
	var all []scored
	for _, d := range w.Directions {
		a := w.analyses[d]
		if a == nil {
			continue
		}
		scores := scores(key(a), func(i int) bool { return a.Cells[i] == w.Present.Computation() })
		for _, seat := range open {
			for _, t := range seat.trials {
				i := slices.Index(a.Cells, t.Cell().Suite)
				if t.Direction == d && i >= 0 && t.Role != record.RoleHoldout {
					all = append(all, scored{t, scores[i] / math.Sqrt(float64(1+w.turns[t.Cell()]))})
				}
			}
		}
	}
	slices.SortStableFunc(all, func(x, y scored) int { return cmp.Compare(y.score, x.score) })
	var out []record.Trial
	for _, s := range all[:min(n, len(all))] {
		out = append(out, s.trial)
	}
	return out
}

// key is the series that orders a ranking: throughput, or cost where only
// that can be told from noise.
func key(a *model.Analysis) model.Series {
	if a.Works && a.Wall.TypicalError() > noisyWall {
		return a.Cost()
	}
	return a.Wall
}

// noisyWall is the typical relative error of throughput above which the plan
// refines costs instead: the noise floor is 2.8 times as large.
const noisyWall = 0.018

// favourites is how many of the fastest cells get extra attention.
const favourites = 10

// scores says for every figure how much it matters to know it better. favoured
// cells matter as leaders do.
func scores(series model.Series, favoured func(i int) bool) []float64 {
	order := fastest(series)
	typical := math.Max(series.TypicalError(), 1e-6)
	out := make([]float64, len(series.Figures))
	for place, i := range order {
		f := series.Figures[i]
		score := f.Err / typical
		if place < favourites || favoured(i) {
			score++
		}
		for _, other := range []int{place - 1, place + 1} {
			if other >= 0 && other < len(order) && unseparated(f, series.Figures[order[other]]) {
				score += 0.5
			}
		}
		out[i] = score + math.Min(3, math.Max(0, f.Surprise()-2))
	}
	return out
}

// fastest orders the figures that are known.
func fastest(series model.Series) []int {
	order := make([]int, 0, len(series.Figures))
	for i, f := range series.Figures {
		if f.Known() {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(series.Figures[i].Log, series.Figures[j].Log) })
	return order
}

// unseparated reports whether two cells may differ by more than the smallest
// effect worth telling, but are not yet told apart.
func unseparated(a, b model.Figure) bool {
	gap, err := math.Abs(a.Log-b.Log), math.Hypot(a.Err, b.Err)
	return gap < 2*err && gap+2*err > 0.01
}
