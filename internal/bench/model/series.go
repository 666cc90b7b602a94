package model

import (
	"math"
	"math/rand/v2"
	"slices"

	"sshpace/internal/base/alg"
	"sshpace/internal/base/stats"
)

// Series holds the figures of one quantity, over all cells of one direction.
type Series struct {
	Figures     []Effect // in the order of the cells given
	Degrees     float64  // degrees of freedom of the errors
	Interaction float64  // relative standard deviation of cells from cipher + MAC
	Level       float64  // standard error of the run's mean level, common to all figures

	between float64     // standard error of a figure from one run to the next, which a single run cannot show
	draws   [][]float64 // of the bootstrap, each with the logarithms of all figures
}

// Effect is the estimate of one quantity of one cell: the logarithm of ns per byte, with its
// standard error in comparisons with other cells. N counts connections; 0 means predicted.
type Effect struct {
	stats.Estimate
	Basis  int            // connections of all cells that are the same computation
	Shared int            // these cells; 0 where nothing is known
	Held   bool           // kept from the fit, to see how good predictions are
	Others stats.Estimate // the measurement relative to the prediction from other cells; unknown where one of them is missing
}

// observation is one connection's value of one quantity. N is 0 for a copy.
type observation struct {
	located
	cell    int
	holdout bool
}

// replicates is the number of bootstrap samples.
const replicates = 200

// fitSeries estimates all cells from the connections' values.
func fitSeries(cells []alg.Suite, obs []observation, between float64) Series {
	s := Series{between: between, Figures: make([]Effect, len(cells)), Degrees: blocks}
	if len(obs) == 0 {
		return s
	}
	e := newEstimator(cells, obs)
	s.Interaction, s.Figures = e.interaction, e.figures()
	s.draws = stats.Bootstrap(replicates, func(random *rand.Rand) []float64 {
		logs := make([]float64, len(cells))
		for i, f := range e.of(e.resample(random)) {
			if logs[i] = f.Log; f.Shared == 0 {
				logs[i] = math.NaN()
			}
		}
		return logs
	})
	s.errors()
	return s
}

// errors takes the standard errors of the figures from the draws of the bootstrap. Without draws
// they stay as they are.
func (s *Series) errors() {
	if len(s.draws) == 0 {
		return
	}
	errs, level := stats.Beside(s.draws)
	s.Level = level
	for i := range s.Figures {
		if f := &s.Figures[i]; f.Shared > 0 {
			f.Err, f.DF = math.Hypot(math.Hypot(f.Err, s.between), errs[i]), s.Degrees
		}
	}
}

// together combines the figures of two sides, for cells of which both are known: of makes one
// logarithm of both, such as that of the sum.
func together(a, b Series, of func(x, y float64) float64) Series {
	s := a
	s.Figures, s.draws = make([]Effect, len(a.Figures)), nil
	s.Degrees, s.Level = min(a.Degrees, b.Degrees), max(a.Level, b.Level)
	for i, x := range a.Figures {
		y := b.Figures[i]
		if !x.Known() || !y.Known() {
			continue
		}
		f := &s.Figures[i]
		if *f = x; y.Log > x.Log {
			*f = y
		}
		f.Log, f.N, f.Basis = of(x.Log, y.Log), min(x.N, y.N), min(x.Basis, y.Basis)
		if len(a.draws) > 0 {
			f.Err = 0
		}
	}
	for r := range a.draws {
		draw := make([]float64, len(a.Figures))
		for i := range draw {
			draw[i] = of(a.draws[r][i], b.draws[r][i])
		}
		s.draws = append(s.draws, draw)
	}
	s.errors()
	return s
}

// Known reports whether there is any figure.
func (s Series) Known() bool {
	return slices.ContainsFunc(s.Figures, func(f Effect) bool { return f.Known() })
}

// PredictionErrors returns the relative errors of the predictions of held-out cells, against their
// own measurements.
func (s Series) PredictionErrors() []float64 {
	var out []float64
	for _, f := range s.Figures {
		if f.Held && f.Others.Known() {
			out = append(out, math.Abs(math.Expm1(-f.Others.Log)))
		}
	}
	return out
}

// Noise returns the relative difference that two equal cells stay below in 95 % of runs: that of
// the median of their errors.
func (s Series) Noise() float64 {
	var errs []float64
	for _, f := range s.Figures {
		if f.Known() {
			errs = append(errs, f.Err)
		}
	}
	return math.Expm1(stats.Estimate{Err: stats.Median(errs), DF: s.Degrees}.Repeated().Arm())
}

// Interval returns a figure on the original scale with the interval in which 95 % of repeated runs
// find it: it includes the errors of both runs, and that of the machine's own level, which does not
// matter within a ranking.
func (s Series) Interval(i int) stats.Interval {
	return s.Figures[i].Repeated().WithError(s.Level, 0).Interval()
}
