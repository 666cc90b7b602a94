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
	Figures     []Figure // in the order of the cells given
	Degrees     float64  // degrees of freedom of the errors
	Interaction float64  // relative standard deviation of cells from cipher + MAC
	Level       float64  // standard error of the run's mean level, common to all figures

	between float64     // standard error of a figure from one run to the next, which nothing within a run shows
	draws   [][]float64 // of the bootstrap, each with the logarithms of all figures
}

// Figure is what is known about one quantity of one cell: the logarithm of ns per byte, with
// its standard error beside other cells. N counts connections; it is 0 where it is predicted.
type Figure struct {
	stats.Estimate
	Basis     int     // connections of all cells that are the same computation
	Shared    int     // these cells
	Measured  float64 // mean of connections, freed of the machine's level; 0 if N is 0
	Own       float64 // standard error of Measured
	Predicted float64 // from other cells only
	Error     float64 // standard error of Predicted, the cell's own deviation included
	Foretold  bool    // Predicted is set
	// Slowed is how much of Log is other guests' doing: what the machine's best moments
	// would take off it. N is 0 where slices do not show it.
	Slowed stats.Estimate
}

// observation is one connection's value of one quantity.
type observation struct {
	cell    int
	log     float64
	n       int // slices, or parts of them; 0 for a copy
	blocks  []block
	longer  string // what it shares with others, with the standard error of that
	moved   float64
	holdout bool
}

// replicates of the bootstrap.
const replicates = 200

// fitSeries estimates all cells from the connections' values.
func fitSeries(cells []alg.Suite, obs []observation, between float64) Series {
	s := Series{between: between, Figures: make([]Figure, len(cells)), Degrees: blocks}
	if len(obs) == 0 {
		return s
	}
	e := newEstimator(cells, obs)
	s.Interaction = e.interaction
	values := make([]float64, len(obs))
	for i, o := range obs {
		values[i] = o.log
	}
	e.fill(s.Figures, values)
	s.draw(func(random *rand.Rand) []float64 {
		logs := make([]float64, len(cells))
		for c, figure := range e.of(e.resample(random, values)) {
			for _, i := range e.classes[c] {
				logs[i] = figure.Log
			}
		}
		return logs
	})
	return s
}

// draw makes the figures again from samples drawn at random: what they vary by is their
// error, and what all vary by together that of the level.
func (s *Series) draw(sample func(*rand.Rand) []float64) {
	for r := range uint64(replicates) { // each with a seed of its own: quantities see the same moments
		s.draws = append(s.draws, sample(rand.New(rand.NewPCG(r, 1))))
	}
	s.errors()
}

// errors are those that the draws show.
func (s *Series) errors() {
	levels := make([]float64, len(s.draws))
	for r, draw := range s.draws {
		var known []float64
		for i, f := range s.Figures {
			if f.Basis > 0 || f.Foretold {
				known = append(known, draw[i]-f.Log)
			}
		}
		levels[r] = stats.Mean(known)
	}
	s.Level = math.Sqrt(stats.Variance(levels))
	each := make([]float64, len(s.draws))
	for i := range s.Figures {
		f := &s.Figures[i]
		if f.Basis == 0 && !f.Foretold {
			continue
		}
		for r, draw := range s.draws {
			each[r] = draw[i] - levels[r]
		}
		f.Err, f.DF = math.Hypot(math.Hypot(f.Err, s.between), math.Sqrt(stats.Variance(each))), s.Degrees
	}
}

// sumOf are the figures of two sides together, for cells of which both are known.
func sumOf(a, b Series) Series {
	s := a
	s.Figures, s.draws = make([]Figure, len(a.Figures)), nil
	for i, x := range a.Figures {
		if y := b.Figures[i]; x.Known() && y.Known() {
			f := &s.Figures[i]
			*f = x
			f.Log, f.N, f.Err = sum(x.Log, y.Log), min(x.N, y.N), 0
			f.Measured, f.Predicted = sum(x.Measured, y.Measured), sum(x.Predicted, y.Predicted)
			f.Foretold, f.Basis = x.Foretold && y.Foretold, min(x.Basis, y.Basis)
			share := math.Exp(x.Log - f.Log)
			f.Slowed.Log += (1 - share) * (y.Slowed.Log - x.Slowed.Log)
			f.Slowed.Err = math.Hypot(share*x.Slowed.Err, (1-share)*y.Slowed.Err)
		}
	}
	for r := range a.draws {
		draw := make([]float64, len(a.Figures))
		for i := range draw {
			draw[i] = sum(a.draws[r][i], b.draws[r][i])
		}
		s.draws = append(s.draws, draw)
	}
	s.errors()
	return s
}

// known tells whether there is any figure.
func (s Series) known() bool {
	return slices.ContainsFunc(s.Figures, func(f Figure) bool { return f.Known() })
}

// TypicalError is the median standard error of the known figures.
func (s Series) TypicalError() float64 {
	var errs []float64
	for _, f := range s.Figures {
		if f.Known() {
			errs = append(errs, f.Err)
		}
	}
	return stats.Median(errs)
}

// Noise is the relative difference that two cells stay below in 95 % of runs, if they are
// equal.
func (s Series) Noise() float64 {
	return math.Expm1(stats.Estimate{Err: s.TypicalError(), DF: s.Degrees}.Repeated().Arm())
}

// Interval is a figure on the original scale with the interval in which 95 % of
// repeated runs find it: it holds the errors of both runs, and that of the
// machine's own level, which does not matter within a ranking.
func (s Series) Interval(i int) stats.Interval {
	return s.Figures[i].Repeated().WithError(s.Level, 0).Interval()
}
